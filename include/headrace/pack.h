// SPDX-License-Identifier: Apache-2.0
//
// pack: a data set written as shards that hr::open() opens.
//
//   hr::pack(hr::open("photos"), "shards", {.format = "tar", .shards = 64});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/dataset.h"

namespace hr {

struct PackOptions {
  std::string format = "tar";                  // one that `headrace formats` says can be written
  uint64_t shards = 0;                         // 0: as many as shard_bytes makes
  uint64_t shard_bytes = uint64_t{256} << 20;  // about
  uint32_t for_ranks = 1;                      // the number of shards is a multiple of it
  bool keep_order = false;               // false: shuffled, so that each shard is like the whole
  uint64_t seed = 0;                     // of the shuffle
  unsigned threads = 0;                  // 0: as many as cores
  std::vector<std::string> fields = {};  // to write; none: all
  std::vector<std::string> drop = {};    // of these, not to write
  // From any thread, one call at a time.
  std::function<void(uint64_t samples_done, uint64_t samples)> progress = {};
};

struct PackResult {
  uint64_t samples = 0;
  uint64_t shards = 0;
  uint64_t shards_kept = 0;  // that an earlier, unfinished call had written
};

// The same call again goes on where it was interrupted, or finds all done.  The same bytes as
// Python's hr.pack writes.
HEADRACE_API PackResult pack(const Dataset& data, const std::string& folder,
                             const PackOptions& options = {});

}  // namespace hr
