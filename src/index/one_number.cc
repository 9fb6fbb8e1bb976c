// SPDX-License-Identifier: Apache-2.0
#include "index/one_number.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace headrace {
namespace {

// Writes one number as an element; false where the type cannot hold it.
template <typename T, typename From>
bool put(From number, MutableBytes out) {
  if constexpr (std::is_floating_point_v<T>) {
    store_le(out, static_cast<T>(number));
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // Compared as doubles: the upper border of 64 bits is 2^64 or 2^63, which no value reaches.
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double least = std::is_signed_v<T> ? -above : 0;
    if (!(number >= least && number < above) || number != std::floor(number)) return false;
    store_le(out, static_cast<T>(number));
    return true;
  } else {
    if (!std::in_range<T>(number)) return false;
    store_le(out, static_cast<T>(number));
    return true;
  }
}

template <typename From>
bool put_as(DType dtype, From number, MutableBytes out) {
  switch (dtype) {
    case DType::kU8:
      return put<uint8_t>(number, out);
    case DType::kI8:
      return put<int8_t>(number, out);
    case DType::kU16:
      return put<uint16_t>(number, out);
    case DType::kI16:
      return put<int16_t>(number, out);
    case DType::kU32:
      return put<uint32_t>(number, out);
    case DType::kI32:
      return put<int32_t>(number, out);
    case DType::kU64:
      return put<uint64_t>(number, out);
    case DType::kI64:
      return put<int64_t>(number, out);
    case DType::kF32:
      return put<float>(number, out);
    case DType::kF64:
      return put<double>(number, out);
    case DType::kF16:
    case DType::kBF16:
      return false;
  }
  return false;
}

}  // namespace

bool put_number(DType dtype, double number, MutableBytes out) {
  return put_as(dtype, number, out);
}

bool convert_number(DType stored, Bytes from, DType dtype, MutableBytes to) {
  switch (stored) {
    case DType::kU8:
      return put_as(dtype, load_le<uint8_t>(from), to);
    case DType::kI8:
      return put_as(dtype, load_le<int8_t>(from), to);
    case DType::kU16:
      return put_as(dtype, load_le<uint16_t>(from), to);
    case DType::kI16:
      return put_as(dtype, load_le<int16_t>(from), to);
    case DType::kU32:
      return put_as(dtype, load_le<uint32_t>(from), to);
    case DType::kI32:
      return put_as(dtype, load_le<int32_t>(from), to);
    case DType::kU64:
      return put_as(dtype, load_le<uint64_t>(from), to);
    case DType::kI64:
      return put_as(dtype, load_le<int64_t>(from), to);
    case DType::kF32:
      return put_as(dtype, load_le<float>(from), to);
    case DType::kF64:
      return put_as(dtype, load_le<double>(from), to);
    case DType::kF16:
    case DType::kBF16:
      return false;
  }
  return false;
}

std::string number_text(DType stored, Bytes from) {
  std::byte wide[8];
  if (stored != DType::kF32 && stored != DType::kF64 &&
      convert_number(stored, from, DType::kI64, wide))
    return fmt::format("{}", load_le<int64_t>(wide));
  return convert_number(stored, from, DType::kF64, wide) ? fmt::format("{}", load_le<double>(wide))
                                                         : "?";
}

}  // namespace headrace
