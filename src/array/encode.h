// SPDX-License-Identifier: Apache-2.0
//
// What is done to a chunk before it is stored: the other way round of filters.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

enum class Compressor : uint8_t { kNone, kBloscLz4, kBloscZstd, kZstd, kGzip, kZlib };

// "none", "blosc-lz4", "blosc-zstd", "zstd", "gzip", "zlib"; nothing for others.
std::optional<Compressor> compressor_named(std::string_view name);

struct ChunkEncoding {
  Compressor compressor = Compressor::kNone;
  int level = 5;
  size_t item = 1;       // bytes of an element
  bool shuffle = false;  // before a compressor other than Blosc, which shuffles by itself
};

// The same bytes give the same bytes.  Thread-safe; scratch memory is the thread's own.
Status encode_chunk(const ChunkEncoding& encoding, Bytes chunk, Buffer& out);

}  // namespace headrace
