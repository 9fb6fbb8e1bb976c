// SPDX-License-Identifier: Apache-2.0
//
// SquashFS metadata: tables of inodes, folders and fragments, in blocks of 8 KiB, packed.
//
//   | u16 size, bit 15: stored plain | size bytes |  next block | …
#pragma once

#include <array>
#include <string_view>

#include "base/buffer.h"
#include "format/format.h"
#include "format/header_window.h"

namespace headrace {

// How the blocks of an image are packed; the numbers are on disk.
enum class SquashPacking : uint16_t {
  kGzip = 1,
  kLzma = 2,
  kLzo = 3,
  kXz = 4,
  kLz4 = 5,
  kZstd = 6
};

// "gzip", …; "" for no number of the format.
std::string_view squash_packing_name(SquashPacking packing);

// Unpacks one block and says how many bytes of `out` it filled.
Result<size_t> unpack_squash_block(SquashPacking packing, Bytes packed, MutableBytes out);

inline constexpr size_t kSquashMetadataBlock = 8192;

// A byte of a table: where its block begins, from the start of the table, and where it is in it.
struct SquashPlace {
  uint64_t block = 0;
  uint64_t offset = 0;
};

// Reads a table, block after block, and keeps the last ones.  One thread at a time.
class SquashTable {
 public:
  // The table lies in [begin, end) of the image; `end` is within the file.
  SquashTable(const ShardInput& shard, SquashPacking packing, uint64_t begin, uint64_t end)
      : packing_(packing), begin_(begin), end_(end), window_(shard) {}

  // Fills `out` from the place on, over block ends, and moves the place behind it.
  Status read(SquashPlace& at, MutableBytes out);

 private:
  // 512 KiB: inodes lie in the order of the folders that name them.
  static constexpr size_t kKept = 64;
  struct Block {
    uint64_t at = ~uint64_t{0};
    uint64_t next = 0;
    size_t size = 0;
    Buffer bytes;
  };
  Status block(uint64_t at, const Block*& out);

  const SquashPacking packing_;
  const uint64_t begin_;
  const uint64_t end_;
  HeaderWindow window_;
  std::array<Block, kKept> kept_;
};

}  // namespace headrace
