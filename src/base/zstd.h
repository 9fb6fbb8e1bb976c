// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows libzstd.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/inflater.h"
#include "base/status.h"

namespace headrace {

// Unpacks one frame, or several one after the other, and says how many bytes of `out` it filled.
// Bad bytes, and more than fits, are kCorrupt; a build without the library says so.
Result<size_t> unpack_zstd(Bytes packed, MutableBytes out);

// Of frames one after the other, whether or not they say their size.
Result<std::unique_ptr<Inflater>> zstd_inflater();

// All of `in` as one frame that says its size.  The same bytes give the same bytes.
Status pack_zstd(Bytes in, int level, Buffer& out);

// Unpacks all of it, which must give exactly `expected_bytes`: other sizes are kCorrupt, and
// nothing is allocated that so few bytes cannot become.
Status zstd_open(Bytes packed, uint64_t expected_bytes, Buffer& out);

// What the first frame says it unpacks to; nothing where it does not say, or is none.
std::optional<uint64_t> zstd_stated_bytes(Bytes packed);

}  // namespace headrace
