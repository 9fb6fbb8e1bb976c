// SPDX-License-Identifier: Apache-2.0
//
// Frames of Blosc 1, opened by our own hands: LZ4, zstd and zlib, shuffled by bytes or not.  What
// makes it faster than the library: the bytes of elements are put together straight from where they
// lie and past the cache, runs of one byte cost next to nothing, and of a part only the
// elements that are wanted are put together.
#pragma once

#include <optional>

#include "array/shuffle.h"
#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

class BloscFrame {
 public:
  // Nothing for what is left to the library: other codecs and filters, and bytes that make no
  // sense, which it names.
  static std::optional<BloscFrame> parse(Bytes frame);

  uint64_t bytes() const { return bytes_; }  // that it opens to
  // Whether a part is one of whole elements.
  bool holds(uint64_t begin, uint64_t size) const;
  // Opens bytes [begin, begin + out.size()), which it holds.
  Status open(uint64_t begin, MutableBytes out, NextUse next_use) const;

 private:
  enum class Codec : uint8_t { kLz4 = 1, kZlib = 3, kZstd = 4 };

  BloscFrame() = default;
  Status open_block(uint64_t block, uint64_t begin, MutableBytes out, NextUse next_use) const;
  Status unpack_block(Bytes rest, MutableBytes room, std::span<Bytes> streams) const;
  Status unpack(Bytes stream, MutableBytes out) const;
  Status put_records(Bytes shuffled, uint64_t begin, MutableBytes out) const;

  Bytes frame_;
  Codec codec_ = Codec::kLz4;
  bool is_copied_ = false;    // nothing was packed
  bool is_shuffled_ = false;  // and elements have several bytes
  bool is_split_ = false;     // each plane of a whole block is packed by itself
  size_t item_ = 1;
  uint64_t bytes_ = 0;
  uint64_t block_ = 0;
};

}  // namespace headrace
