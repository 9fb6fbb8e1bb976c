// SPDX-License-Identifier: Apache-2.0
#include "codec/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace headrace {
namespace {

struct Row {
  std::string_view name;
  size_t bytes;
};
// In the order of DType.
constexpr std::array<Row, 12> kRows{{{"u8", 1},
                                     {"i8", 1},
                                     {"u16", 2},
                                     {"i16", 2},
                                     {"u32", 4},
                                     {"i32", 4},
                                     {"u64", 8},
                                     {"i64", 8},
                                     {"f16", 2},
                                     {"bf16", 2},
                                     {"f32", 4},
                                     {"f64", 8}}};

}  // namespace

size_t size_of(DType dtype) {
  return kRows[static_cast<size_t>(dtype)].bytes;
}
std::string_view dtype_name(DType dtype) {
  return kRows[static_cast<size_t>(dtype)].name;
}

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
