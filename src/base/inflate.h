// SPDX-License-Identifier: Apache-2.0
//
// Deflate, and the checksum that comes with it in zip and gzip.
#pragma once

#include <cstdint>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// Deflate cannot make more of a byte than this: what claims more is a lie.
inline constexpr uint64_t kMaxInflation = 1032;

// Whether it begins as a gzip member does.
inline bool is_gzip(Bytes head) {
  return head.size() > 1 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b};
}

// CRC-32 as zip, gzip and PNG have it, continuing from `seed` (that of what came before).
uint32_t crc32(Bytes data, uint32_t seed = 0);

// A raw deflate stream (RFC 1951) that gives exactly `expected` bytes.  The stream may end
// before `in` does; `used`, where it is given, says where.  kUnsupported in a build without
// libdeflate.
Status inflate_raw(Bytes in, uint64_t expected, Buffer& out, uint64_t* used = nullptr);
// Likewise, into memory of that size.
Status inflate_raw(Bytes in, MutableBytes out, uint64_t* used = nullptr);

// One zlib stream (RFC 1950) or gzip member (RFC 1952) that fills `out` exactly; its checksum is
// verified.  Several members are taken too.
Status inflate_whole(Bytes in, MutableBytes out);

enum class DeflateWrap : uint8_t { kZlib, kGzip };  // RFC 1950, RFC 1952 without name and time

// All of `in` as one stream.  `level` is 1 to 12; the same bytes give the same bytes.
Status deflate_whole(Bytes in, DeflateWrap wrap, int level, Buffer& out);

}  // namespace headrace
