// SPDX-License-Identifier: Apache-2.0
//
// Stacked columns: a data set with a few fields more, each a dense array of numbers that the index
// holds one by one.
//
//   base     a: int   b: float   c: int   name: text
//   stack    "x" of (a, b) as f32  ──►  x: array f32[2]
//
// What a sample lacks is an error, a number that stands for it, or leaves the sample out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/source.h"

namespace headrace {

enum class Missing : uint8_t {
  kError,
  kFill,  // ColumnStack::fill instead
  kDrop,  // the sample is left out of the data set
};

struct ColumnStack {
  std::string name;                  // of the new field; the base has none of this name
  std::vector<std::string> columns;  // of the base, in this order; one may come twice
  DType dtype = DType::kF32;         // f32, f64 or an integer, which holds numbers exactly or fails
  Missing missing = Missing::kError;
  double fill = 0;
};

// An unknown column, one that holds no numbers, and a fill that the type cannot hold are
// kInvalidArgument.  With kDrop the samples are looked at once, and a view of the others is given.
Result<std::shared_ptr<const Source>> stack_columns(std::shared_ptr<const Source> base,
                                                    std::vector<ColumnStack> stacks);

}  // namespace headrace
