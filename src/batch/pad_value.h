// SPDX-License-Identifier: Apache-2.0
//
// PadValue: what stands in a padded column where a sample's value is smaller than the largest.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

// As a user gives it.
using PadNumber = std::variant<int64_t, uint64_t, double>;

// One element, as the column holds it.
struct PadValue {
  std::array<std::byte, 8> element{};  // the first size_of(dtype) bytes count

  // Of so many bytes each.
  void fill(MutableBytes elements, size_t item) const;
  bool operator==(const PadValue&) const = default;
};

// The number as an element of this type.  kInvalidArgument where the type cannot hold it: a whole
// number must be held exactly, another is rounded to the nearest where the type has fractions.
Result<PadValue> pad_value(PadNumber number, DType dtype);

}  // namespace headrace
