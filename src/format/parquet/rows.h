// SPDX-License-Identifier: Apache-2.0
//
// Arrow columns of one leaf each, as numbers or as the values of rows.  Structs and lists above
// the leaf have one child: whoever reads the column left the others out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "format/arrow/abi.h"
#include "index/row_table.h"

namespace headrace {

// Numbers of rows, an entry each: integers in `ints`, all others in `floats`.
struct ParquetNumbers {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<bool> present;  // not where it was null
};

// Adds the rows of a column of numbers.  kUnsupported where one exceeds 63 bits.
Status add_numbers(const ArrowSchema& schema, const ArrowArray& column, ParquetNumbers& out);

// Adds the rows of a column: the bytes of texts and binaries, numbers little-endian, a list of
// numbers as one value, a list of bytes as several.  A null is a row without values; within a list
// an empty value or NaN, and an error among integers, which have nothing to say it with.
Status add_rows(const ArrowSchema& schema, const ArrowArray& column, RowTableBuilder& out);

}  // namespace headrace
