// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a field once its boxes are gathered: of which type they are, and what makes them
// of what is stored.  Variables that are stacked lie one after the other, each as it is stored:
//
//   gathered   | u 4 × f32 | v 4 × i16 |         4 elements of each, item_begins 0, 4, 6
//   made       | u 4 × f32 | v 4 × f32 |
#pragma once

#include <string>
#include <vector>

#include "array/array_source.h"

namespace headrace {

struct FieldNumbers {
  DType dtype = DType::kF32;  // of the result
  bool unpacks = false;
  bool is_mixed = false;            // of several stored types
  bool lies_ready = false;          // elements are neither turned nor unpacked
  bool has_header = false;          // .npy's, before the numbers
  std::vector<size_t> item_begins;  // bytes of an element of all variables before each, and of all;
                                    // of the widest file of a variable
};

FieldNumbers numbers_of(const ArrayDescription& d, const ArrayField& field);

// What comes before a value whose length does not tell its shape.
std::string npy_header(const ArrayDescription& d, const ArrayField& field, DType dtype,
                       int64_t position);

// Makes `out` of the gathered `raw`, of a region of `shape`; they may be the same memory where
// nothing is unpacked.
Status finish_numbers(const ArrayDescription& d, const ArrayField& field, const FieldNumbers& how,
                      int64_t position, const Extents& shape, MutableBytes raw, MutableBytes out);

}  // namespace headrace
