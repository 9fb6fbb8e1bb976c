// SPDX-License-Identifier: Apache-2.0
//
// The 512-byte header of a tar member (POSIX.1-1988 ustar, with GNU's and the
// binary variants that are in use):
//
//   0      100    108   116   124    136     148      156    157     257     263
//   +------+------+-----+-----+------+-------+--------+------+-------+-------+- -
//   | name | mode | uid | gid | size | mtime | chksum | type | link  | magic | …
//   +------+------+-----+-----+------+-------+--------+------+-------+-------+- -
//   … 345 prefix (155): goes before the name, with a '/', where the magic is "ustar\0"
//
// Numbers are octal digits, or base-256 when the first bit is set.  chksum is the
// sum of all bytes with its own eight taken as spaces.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

inline constexpr uint64_t kTarBlock = 512;

struct TarHeader {
  char type = '0';
  uint64_t size = 0;
  std::string name = {};
};

inline uint64_t tar_padded(uint64_t bytes) {
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

bool is_zero(Bytes block);

// Verifies the checksum.  `out` keeps its memory.  Precondition: block has 512 bytes.
Status parse_tar_header(Bytes block, TarHeader& out);
bool has_tar_checksum(Bytes block);

// What PAX records override; empty or kNoSize where they say nothing.
inline constexpr uint64_t kNoSize = ~uint64_t{0};
struct PaxRecords {
  std::string path = {};
  uint64_t size = kNoSize;
  bool sparse = false;
};
// Records "length key=value\n"; those that are not about path, size or sparseness are skipped.
Status parse_pax(Bytes data, PaxRecords& out);

// A header with fixed owner, mode 0644 and time 0: equal members give equal bytes.
// False when the name does not fit (100 bytes, or 155 '/' 100).
bool make_tar_header(std::string_view name, uint64_t size, char type,
                     std::array<std::byte, kTarBlock>& out);
// "length key=value\n", whose length counts itself.
std::string pax_record(std::string_view key, std::string_view value);
inline constexpr uint64_t kMaxOctalSize = uint64_t{1} << 33;  // eleven digits hold less

}  // namespace headrace
