// SPDX-License-Identifier: Apache-2.0
#include "codec/tensor.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
bool TensorSpec::is_fixed() const {
  return std::none_of(shape.begin(), shape.end(), [](int64_t n) { return n == kVaries; });
}

uint64_t TensorSpec::elements() const {
  uint64_t n = 1;
  for (const int64_t extent : shape) n *= static_cast<uint64_t>(extent);
  return n;
}

std::string TensorSpec::text() const {
  std::string out = fmt::format("{}[", dtype_name(dtype));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ',';
    out += shape[i] == kVaries ? "?" : fmt::format("{}", shape[i]);
  }
  return out + "]";
}

}  // namespace headrace
