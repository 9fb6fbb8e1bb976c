// SPDX-License-Identifier: Apache-2.0
#include "format/typed_values.h"

#include <fmt/format.h>

#include <cmath>

#include "base/half.h"
#include "base/npy.h"
#include "format/inline_number.h"

namespace headrace {
namespace {

template <typename T>
Status put_int(ByteVector& out, int64_t v) {
  if (!std::in_range<T>(v)) return corrupt(fmt::format("{} does not fit the type of its field", v));
  put_le(out, static_cast<T>(v));
  return {};
}

Status put_integer(ByteVector& out, DType dtype, int64_t v) {
  switch (dtype) {
    case DType::kU8:
      return put_int<uint8_t>(out, v);
    case DType::kI8:
      return put_int<int8_t>(out, v);
    case DType::kU16:
      return put_int<uint16_t>(out, v);
    case DType::kI16:
      return put_int<int16_t>(out, v);
    case DType::kU32:
      return put_int<uint32_t>(out, v);
    case DType::kI32:
      return put_int<int32_t>(out, v);
    case DType::kU64:
      return put_int<uint64_t>(out, v);
    default:
      return put_int<int64_t>(out, v);
  }
}

void put_float(ByteVector& out, DType dtype, double v) {
  if (dtype == DType::kF16)
    put_le(out, std::isnan(v) ? uint16_t{0x7e00} : to_f16(static_cast<float>(v)));
  else if (dtype == DType::kF32)
    put_le(out, static_cast<float>(v));
  else
    put_le(out, v);
}

}  // namespace

bool is_number(Kind kind) {
  return kind == Kind::kInt || kind == Kind::kFloat;
}

bool is_typed_array(const Field& field) {
  return (field.kind == Kind::kArray || field.kind == Kind::kTokens) && field.dtype.has_value();
}

DType type_of_number(const Field& field, Kind kind) {
  const bool is_float = kind == Kind::kFloat;
  const bool fits =
      field.dtype && *field.dtype != DType::kBF16 && (*field.dtype >= DType::kF16) == is_float;
  if (fits) return *field.dtype;
  return is_float ? DType::kF64 : DType::kI64;
}

Status put_number(ByteVector& out, DType dtype, const RecordValue& value) {
  if (value.kind == Kind::kFloat) {
    HEADRACE_ASSIGN(const double v, float_of(value));
    put_float(out, dtype, v);
    return {};
  }
  HEADRACE_ASSIGN(const int64_t v, int_of(value));
  return put_integer(out, dtype, v);
}

Result<std::vector<uint64_t>> shape_of(const Field& field, uint64_t bytes) {
  const uint64_t item = size_of(*field.dtype);
  std::vector<uint64_t> shape;
  uint64_t known = 1;
  size_t varies = ~size_t{0};
  for (const int64_t n : field.shape) {
    if (n == kVaries) varies = shape.size();
    shape.push_back(n == kVaries ? 1 : static_cast<uint64_t>(n));
    known *= shape.back();
  }
  if (field.kind == Kind::kTokens && field.shape.empty()) {
    shape = {1};
    varies = 0;
  }
  if (varies < shape.size() && known > 0) shape[varies] = bytes / (known * item);
  const std::optional<uint64_t> items = count_items(shape, item);
  if (!items || *items * item != bytes)
    return corrupt(fmt::format("{} bytes are no {}", bytes, field_text(field)));
  return shape;
}

Status numpy_can_hold(const Schema& schema) {
  for (const Field& field : schema)
    if (is_typed_array(field) && *field.dtype == DType::kBF16)
      return unsupported(
          fmt::format("field '{}' is an array of bf16, a type that NumPy does not have: leave it "
                      "out, or pack to another format",
                      field.name));
  return {};
}

}  // namespace headrace
