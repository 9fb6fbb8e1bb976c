// SPDX-License-Identifier: Apache-2.0
//
// A data set whose columns lie in memory: row i of each is what sample i has.  Nothing is copied;
// who made the columns keeps their memory alive.
//
//   numbers        row i at data + i·stride, of `dtype`
//   arrays         likewise, row_bytes each, C order
//   text, bytes    from offsets[i] to offsets[i + 1]
//
// Rows of up to kInlineRow bytes are taken by needs() itself; larger ones are extents that the
// store lends (Store::pin), so that they go from where they lie into the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/source.h"

namespace headrace {

inline constexpr uint64_t kInlineRow = 512;

struct MemoryColumn {
  Field
      field;  // kInt and kFloat: inline, with the dtype of the memory; kArray; kText, kBytes, kNpy
  const std::byte* data = nullptr;
  uint64_t row_bytes = 0;             // of numbers and arrays
  int64_t stride = 0;                 // from row to row; arrays above kInlineRow: row_bytes
  const uint64_t* offsets = nullptr;  // of text and bytes: one more than there are rows
  const uint8_t* present = nullptr;   // a byte a row, 0 where it has no value; null: all have one
  std::shared_ptr<const void> keep = {};
};

struct MemoryColumns {
  std::string name;  // for messages
  uint64_t samples = 0;
  std::vector<MemoryColumn> columns;
  Hash128 fingerprint;
};

// kInvalidArgument where a column cannot be read so.
Result<std::shared_ptr<const Source>> memory_source(MemoryColumns columns);

}  // namespace headrace
