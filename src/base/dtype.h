// SPDX-License-Identifier: Apache-2.0
//
// The types of numbers, as files hold them and batches deliver them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

// The numbers are on disk.
enum class DType : uint8_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kU64 = 6,
  kI64 = 7,
  kF16 = 8,
  kBF16 = 9,
  kF32 = 10,
  kF64 = 11,
};
inline constexpr size_t kDTypes = 12;

size_t size_of(DType dtype);
std::string_view dtype_name(DType dtype);  // "u8", "f16", "bf16", …
std::optional<DType> dtype_named(std::string_view name);

inline constexpr int64_t kVaries = -1;  // an extent that differs from sample to sample

}  // namespace headrace
