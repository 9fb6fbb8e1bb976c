// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "base/status.h"
#include "index/source.h"
#include "pack/pack.h"

namespace headrace {

// Which samples go where.  Immutable, hence thread-safe.
struct PackLayout {
  uint64_t samples = 0;
  uint64_t shards = 0;
  bool keep_order = false;
  Key key{0};

  // Floors of equal steps: shards differ by at most one sample.
  uint64_t begin(uint64_t shard) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(shard) * samples / shards);
  }
};

// How many shards the options make of the source.
Result<uint64_t> count_shards(const Source& source, const PackOptions& options);

}  // namespace headrace
