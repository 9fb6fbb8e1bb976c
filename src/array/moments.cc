// SPDX-License-Identifier: Apache-2.0
#include "array/moments.h"

#include <algorithm>
#include <array>

#include "base/half.h"

namespace headrace {
namespace {

// So many numbers are taken in two passes, mean first: more exact than sums of squares, and
// faster than a division for each.
constexpr size_t kBlock = 2048;
// Sums that go on side by side: a processor adds them at once, and their order is fixed.
constexpr size_t kLanes = 8;

template <typename T>
double as_double(T v) {
  return static_cast<double>(v);
}
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
double as_double(F16 v) {
  return static_cast<double>(from_f16(v.bits));
}
double as_double(BF16 v) {
  return static_cast<double>(from_bf16(v.bits));
}

// Those that are not NaN, one after the other; how many.
template <typename T>
size_t gather(Bytes from, double* to) {
  size_t n = 0;
  for (size_t i = 0; i < from.size() / sizeof(T); ++i) {
    to[n] = as_double(load_le<T>(from.subspan(i * sizeof(T))));
    n += to[n] == to[n] ? 1 : 0;
  }
  return n;
}

size_t gather(Bytes from, DType dtype, double* to) {
  switch (dtype) {
    case DType::kU8:
      return gather<uint8_t>(from, to);
    case DType::kI8:
      return gather<int8_t>(from, to);
    case DType::kU16:
      return gather<uint16_t>(from, to);
    case DType::kI16:
      return gather<int16_t>(from, to);
    case DType::kU32:
      return gather<uint32_t>(from, to);
    case DType::kI32:
      return gather<int32_t>(from, to);
    case DType::kU64:
      return gather<uint64_t>(from, to);
    case DType::kI64:
      return gather<int64_t>(from, to);
    case DType::kF16:
      return gather<F16>(from, to);
    case DType::kBF16:
      return gather<BF16>(from, to);
    case DType::kF32:
      return gather<float>(from, to);
    case DType::kF64:
      return gather<double>(from, to);
  }
  return 0;
}

template <typename Term>
double sum(std::span<const double> numbers, const Term& term) {
  std::array<double, kLanes> lanes = {};
  size_t i = 0;
  for (; i + kLanes <= numbers.size(); i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += term(numbers[i + k]);
  for (size_t k = 0; i < numbers.size(); ++i, ++k) lanes[k] += term(numbers[i]);
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

Moments of_block(std::span<const double> numbers) {
  Moments out;
  out.count = numbers.size();
  if (numbers.empty()) return out;
  out.mean = sum(numbers, [](double v) { return v; }) / static_cast<double>(numbers.size());
  out.squares = sum(numbers, [&out](double v) { return (v - out.mean) * (v - out.mean); });
  for (const double v : numbers) {
    out.min = std::min(out.min, v);
    out.max = std::max(out.max, v);
  }
  return out;
}

}  // namespace

double Moments::deviation() const {
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(squares / static_cast<double>(count));
}

void Moments::merge(const Moments& other) {
  nans += other.nans;
  if (other.count == 0) return;
  const uint64_t total = count + other.count;
  const double away = other.mean - mean;
  const double share = static_cast<double>(other.count) / static_cast<double>(total);
  squares += other.squares + away * away * static_cast<double>(count) * share;
  mean = count == 0 ? other.mean : mean + away * share;
  count = total;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

void Moments::add(Bytes elements, DType dtype) {
  const size_t item = size_of(dtype);
  double block[kBlock];
  while (!elements.empty()) {
    const size_t n = std::min(elements.size() / item, kBlock);
    if (n == 0) return;
    const size_t numbers = gather(elements.first(n * item), dtype, block);
    nans += n - numbers;
    merge(of_block({block, numbers}));
    elements = elements.subspan(n * item);
  }
}

}  // namespace headrace
