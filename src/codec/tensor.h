// SPDX-License-Identifier: Apache-2.0
//
// The type and shape of a decoded value, known before data moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace headrace {

struct TensorSpec {
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;  // without the batch axis; kVaries where the sample decides

  bool is_fixed() const;      // no extent varies
  uint64_t elements() const;  // of a fixed spec
  uint64_t bytes() const { return elements() * size_of(dtype); }
  std::string text() const;  // "f32[3,224,224]", "u8[?]"
  bool operator==(const TensorSpec&) const = default;
};

}  // namespace headrace
