// SPDX-License-Identifier: Apache-2.0
//
// Runs of numbers: from one type to another, from one order to another.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/npy.h"
#include "base/status.h"

namespace headrace {

// Each element of `from` as an element of `to`, which has room for as many.  An integer type
// holds the number exactly or it is kCorrupt, with the offset in `from`: too large, a fraction,
// not a number.  Types of floating point take the nearest they have.
Status convert_elements(Bytes from, DType from_type, MutableBytes to, DType to_type);

// A .npy file whose elements are numbers.
struct NpyArray {
  NpyHeader header;
  DType dtype = DType::kU8;  // of NumPy's bool: u8
  std::vector<int64_t> shape;

  // Whether the elements lie little-endian, last axis fastest.
  bool is_plain() const;
  // Copies them so.  `to` has header.data_bytes(); `file` is what was opened.
  Status copy(Bytes file, MutableBytes to) const;
};
// `head` holds at least the header of a file of `total` bytes.  Texts, dates, complex numbers and
// the like are kUnsupported by name.
Result<NpyArray> open_npy(Bytes head, uint64_t total);

}  // namespace headrace
