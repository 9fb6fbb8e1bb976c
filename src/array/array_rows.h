// SPDX-License-Identifier: Apache-2.0
//
// Rows of plain arrays: fields whose value at a position lies in one piece, as it is.
#pragma once

#include <cstdint>
#include <vector>

#include "array/array_source.h"
#include "array/field_numbers.h"

namespace headrace {

// One field.  Immutable.
class ArrayRows {
 public:
  ArrayRows() = default;
  // Not any, unless: one variable along its first axis, one position a sample, all of the other
  // axes; chunks of whole rows that are there, lie plain, and need no change.
  ArrayRows(const ArrayDescription& d, const ArrayField& field, const FieldNumbers& numbers);

  uint64_t bytes() const { return bytes_; }  // of a row; 0: there are none
  // Where the row of a position lies; false where the arrays have no such position.
  bool find(int64_t position, RowPlace& out) const;

 private:
  const Variable* variable_ = nullptr;
  int64_t from_ = 0;
  uint64_t bytes_ = 0;
  std::vector<int64_t> ends_;  // of each segment, in positions
};

}  // namespace headrace
