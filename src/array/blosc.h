// SPDX-License-Identifier: Apache-2.0
//
// Blosc frames (version 1 and 2 of its format, as numcodecs and HDF5's filter 32001 write them).
#pragma once

#include <string>

#include "array/shuffle.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// Unpacks one frame on this thread and says how many bytes of `out` it filled.  Bad bytes, and
// more than fits, are kCorrupt; a build without the library says so of what blosc_frame.h leaves
// to it.
Result<size_t> unpack_blosc(Bytes frame, MutableBytes out, NextUse next_use = NextUse::kRead);

// Opens bytes [begin, begin + out.size()) of the `expected` that the frame holds, and no more
// blocks of it than they lie in.  False where they are no whole elements of the frame.
Result<bool> unpack_blosc_part(Bytes frame, uint64_t expected, uint64_t begin, MutableBytes out,
                               NextUse next_use = NextUse::kRead);

struct BloscOptions {
  std::string compressor = "lz4";  // or "zstd", "blosclz", "lz4hc", "zlib"
  int level = 5;                   // 0 to 9
  bool shuffle = true;             // bytes of elements side by side
  size_t item = 1;                 // bytes of an element
};

// Packs one frame on this thread.  The same bytes give the same bytes.
Status pack_blosc(Bytes in, const BloscOptions& options, Buffer& out);

}  // namespace headrace
