// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>

namespace headrace {
namespace {

struct Row {
  std::string_view name;
  size_t bytes;
};
// In the order of DType.
constexpr std::array<Row, kDTypes> kRows{{{"u8", 1},
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

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < kDTypes; ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace headrace
