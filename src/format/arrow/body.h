// SPDX-License-Identifier: Apache-2.0
//
// The body of an Arrow batch: which buffer belongs to which field, where it lies, and what it
// holds.  Only what indexing needs is read; values stay where they are.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "format/arrow/columns.h"
#include "format/arrow/metadata.h"
#include "format/header_window.h"
#include "index/part.h"

namespace headrace {

// The values of one field in one batch.
struct ArrowValues {
  uint64_t length = 0;
  uint64_t nulls = 0;
  uint32_t buffer = 0;    // the first of its buffers
  uint32_t variadic = 0;  // how many more a view has
};

// Where a buffer lies, and what it opens to.
struct ArrowExtent {
  uint64_t offset = 0;  // in the file
  uint64_t stored = 0;
  uint64_t decoded = 0;   // equal to stored when encoding is 0
  uint32_t encoding = 0;  // an ArrowCompression

  // Bytes [begin, begin + length) of it, which the caller has checked to be in it.
  PartValue piece(uint64_t begin, uint64_t length) const;
};

// Refilled for each batch: keeps its memory.  One thread at a time.
class ArrowBody {
 public:
  explicit ArrowBody(const ShardInput& shard)
      : window_(shard), allowance_(kFreeBytes + kRatio * shard.info.bytes) {}

  // The bytes of the file through the same window.
  HeaderWindow& window() { return window_; }

  // Finds the buffers of all fields.  `begin` is where the body lies; its length was checked.
  Status open(const ArrowSchema& schema, const ArrowBatch& batch, uint64_t begin, uint64_t length);
  const ArrowValues& array(uint32_t field) const { return arrays_[field]; }

  // A buffer of a field: 0 is that of the nulls, wherever the type has one.
  Status locate(uint32_t field, uint32_t number, ArrowExtent& out);
  // Its first `bytes` bytes, opened; fewer are kCorrupt.
  Status read(uint32_t field, uint32_t number, uint64_t bytes, Buffer& out);
  Status read_all(uint32_t field, uint32_t number, Buffer& out);

  // So many rows are to be indexed.
  Status spend_rows(uint64_t rows);

 private:
  // What a compressed file may open to while it is indexed: beyond, it is a bomb.
  static constexpr uint64_t kFreeBytes = uint64_t{256} << 20;
  static constexpr uint64_t kRatio = 1024;
  static constexpr uint64_t kRowBytes = 64;  // a row of the index, while it is made

  Status spend(uint64_t bytes);
  Status place_arrays(const ArrowSchema& schema, const ArrowBatch& batch);
  Status check_lengths(const ArrowSchema& schema, const ArrowBatch& batch) const;
  Status open_extent(const ArrowExtent& extent, uint64_t bytes, Buffer& out);

  HeaderWindow window_;
  uint64_t allowance_;
  uint64_t begin_ = 0;
  ArrowCompression compression_ = ArrowCompression::kNone;
  std::vector<ArrowValues> arrays_;
  std::vector<ArrowPlace> places_;
  Buffer opened_;
};

}  // namespace headrace
