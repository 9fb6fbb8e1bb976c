// SPDX-License-Identifier: Apache-2.0
//
// The type and shape of a decoded value, known before data moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

enum class DType : uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64
};

size_t size_of(DType dtype);
std::string_view dtype_name(DType dtype);  // "u8", "f16", "bf16", …

inline constexpr int64_t kVaries = -1;  // an extent that differs from sample to sample

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
