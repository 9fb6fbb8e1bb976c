// SPDX-License-Identifier: Apache-2.0
#include "array/unpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/half.h"

namespace headrace {
namespace {

// How the bits of a 16-bit float are stored.
struct F16 {
  uint16_t bits;
  explicit operator double() const { return static_cast<double>(from_f16(bits)); }
};
struct BF16 {
  uint16_t bits;
  explicit operator double() const { return static_cast<double>(from_bf16(bits)); }
};

template <typename Stored>
double number_at(Bytes stored) {
  if constexpr (std::is_arithmetic_v<Stored>)
    return static_cast<double>(load_le<Stored>(stored));
  else
    return static_cast<double>(Stored{load_le<uint16_t>(stored)});
}

template <typename Stored, typename Out>
void unpack_as(const Array& array, Bytes stored, MutableBytes out) {
  const size_t n = stored.size() / sizeof(Stored);
  for (size_t i = 0; i < n; ++i) {
    const double number = number_at<Stored>(stored.subspan(i * sizeof(Stored)));
    const bool gone = array.missing && (number == *array.missing || number != number ||
                                        std::ranges::count(array.also_missing, number) != 0);
    const double value =
        gone ? std::numeric_limits<double>::quiet_NaN() : number * array.scale + array.offset;
    store_le(out.subspan(i * sizeof(Out)), static_cast<Out>(value));
  }
}

template <typename Stored>
void unpack_from(const Array& array, Bytes stored, DType to, MutableBytes out) {
  if (to == DType::kF32)
    unpack_as<Stored, float>(array, stored, out);
  else
    unpack_as<Stored, double>(array, stored, out);
}

}  // namespace

DType unpacked_dtype(DType stored) {
  switch (stored) {
    case DType::kU32:
    case DType::kI32:
    case DType::kU64:
    case DType::kI64:
    case DType::kF64:
      return DType::kF64;
    default:
      return DType::kF32;
  }
}

void swap_bytes(std::span<std::byte> elements, size_t item) {
  if (item < 2) return;
  for (size_t at = 0; at + item <= elements.size(); at += item)
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                 elements.begin() + static_cast<std::ptrdiff_t>(at + item));
}

Bytes end_text(TextEnd end, Bytes text) {
  constexpr auto kNul = std::byte{0};
  if (end == TextEnd::kFirstNul)
    return text.first(
        static_cast<size_t>(std::find(text.begin(), text.end(), kNul) - text.begin()));
  if (end == TextEnd::kNone) return text;
  const std::byte fill = end == TextEnd::kBlanks ? std::byte{' '} : kNul;
  while (!text.empty() && text.back() == fill) text = text.first(text.size() - 1);
  return text;
}

Status check_exact(const Array& array, Bytes stored) {
  constexpr uint64_t kMost = uint64_t{1} << 53;
  const bool is_signed = array.dtype == DType::kI64;
  if (!is_signed && array.dtype != DType::kU64) return {};
  for (size_t at = 0; at + 8 <= stored.size(); at += 8) {
    const auto bits = load_le<uint64_t>(stored.subspan(at));
    const uint64_t size = is_signed && (bits >> 63) != 0 ? ~bits + 1 : bits;
    if (size > kMost)
      return invalid(
          fmt::format("'{}' holds {}{}, which f64 does not hold exactly: make a field of its own "
                      "of it",
                      array.name, size == bits ? "" : "-", size));
  }
  return {};
}

void unpack_numbers(const Array& array, Bytes stored, DType to, MutableBytes out) {
  switch (array.dtype) {
    case DType::kU8:
      return unpack_from<uint8_t>(array, stored, to, out);
    case DType::kI8:
      return unpack_from<int8_t>(array, stored, to, out);
    case DType::kU16:
      return unpack_from<uint16_t>(array, stored, to, out);
    case DType::kI16:
      return unpack_from<int16_t>(array, stored, to, out);
    case DType::kU32:
      return unpack_from<uint32_t>(array, stored, to, out);
    case DType::kI32:
      return unpack_from<int32_t>(array, stored, to, out);
    case DType::kU64:
      return unpack_from<uint64_t>(array, stored, to, out);
    case DType::kI64:
      return unpack_from<int64_t>(array, stored, to, out);
    case DType::kF64:
      return unpack_from<double>(array, stored, to, out);
    case DType::kF16:
      return unpack_from<F16>(array, stored, to, out);
    case DType::kBF16:
      return unpack_from<BF16>(array, stored, to, out);
    default:
      return unpack_from<float>(array, stored, to, out);
  }
}

}  // namespace headrace
