// SPDX-License-Identifier: Apache-2.0
#include "array/encode.h"

#include <algorithm>
#include <array>

#include "array/blosc.h"
#include "base/inflate.h"
#include "base/zstd.h"

namespace headrace {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"none", "blosc-lz4", "blosc-zstd",
                                                    "zstd", "gzip",      "zlib"};

// First all first bytes of the elements, then all second ones, …; what is left over stays last.
Bytes shuffled(Bytes in, size_t item) {
  thread_local Buffer out;
  const size_t n = in.size() / std::max<size_t>(1, item);
  if (item < 2 || n < 2) return in;
  out.resize(in.size());
  for (size_t b = 0; b < item; ++b) {
    const std::byte* from = in.data() + b;
    std::byte* to = out.data() + b * n;
    for (size_t i = 0; i < n; ++i, from += item) to[i] = *from;
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * item), in.end(), out.data() + n * item);
  return out.bytes();
}

}  // namespace

std::optional<Compressor> compressor_named(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<Compressor>(at - kNames.begin());
}

Status encode_chunk(const ChunkEncoding& encoding, Bytes chunk, Buffer& out) {
  const Bytes in = encoding.shuffle ? shuffled(chunk, encoding.item) : chunk;
  switch (encoding.compressor) {
    case Compressor::kNone:
      out.resize(in.size());
      std::copy(in.begin(), in.end(), out.data());
      return {};
    case Compressor::kBloscLz4:
      return pack_blosc(in, {"lz4", encoding.level, true, encoding.item}, out);
    case Compressor::kBloscZstd:
      return pack_blosc(in, {"zstd", encoding.level, true, encoding.item}, out);
    case Compressor::kZstd:
      return pack_zstd(in, encoding.level, out);
    case Compressor::kGzip:
      return deflate_whole(in, DeflateWrap::kGzip, encoding.level, out);
    case Compressor::kZlib:
      return deflate_whole(in, DeflateWrap::kZlib, encoding.level, out);
  }
  return internal("no such compressor");
}

}  // namespace headrace
