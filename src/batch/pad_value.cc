// SPDX-License-Identifier: Apache-2.0
#include "batch/pad_value.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/half.h"

namespace headrace {
namespace {

template <typename T>
Result<PadValue> put(T element) {
  PadValue out;
  std::memcpy(out.element.data(), &element, sizeof element);
  return out;
}

std::string text_of(const PadNumber& number) {
  return std::visit([](auto n) { return fmt::format("{}", n); }, number);
}

template <typename T>
Result<PadValue> whole(const PadNumber& number, DType dtype) {
  using Limits = std::numeric_limits<T>;
  const auto refuse = [&] {
    return invalid(fmt::format("the padding is {} and the values are {}, which holds {} to {}",
                               text_of(number), dtype_name(dtype), Limits::min(), Limits::max()));
  };
  if (const auto* real = std::get_if<double>(&number)) {
    // The largest of 64 bits is no double: compared with the power of two above it.
    const double above = std::ldexp(1.0, Limits::digits);
    if (!(*real >= static_cast<double>(Limits::min()) && *real < above) ||
        *real != std::trunc(*real))
      return refuse();
    return put(static_cast<T>(*real));
  }
  const auto* natural = std::get_if<uint64_t>(&number);
  const bool fits =
      natural != nullptr ? std::in_range<T>(*natural) : std::in_range<T>(std::get<int64_t>(number));
  if (!fits) return refuse();
  return put(natural != nullptr ? static_cast<T>(*natural)
                                : static_cast<T>(std::get<int64_t>(number)));
}

// The nearest number of the type, and how it is stored.
struct Rounded {
  double number;
  PadValue stored;
};

Rounded rounded(double number, DType dtype) {
  Rounded out{number, {}};
  const auto store = [&](auto element, double value) {
    std::memcpy(out.stored.element.data(), &element, sizeof element);
    out.number = value;
  };
  const auto single = static_cast<float>(number);
  if (dtype == DType::kF64)
    store(number, number);
  else if (dtype == DType::kF32)
    store(single, static_cast<double>(single));
  else if (std::isnan(number))
    store(dtype == DType::kF16 ? uint16_t{0x7e00} : uint16_t{0x7fc0}, number);
  else if (dtype == DType::kF16)
    store(to_f16(single), static_cast<double>(from_f16(to_f16(single))));
  else
    store(to_bf16(single), static_cast<double>(from_bf16(to_bf16(single))));
  return out;
}

Result<PadValue> real(const PadNumber& number, DType dtype) {
  const double wanted = std::visit([](auto n) { return static_cast<double>(n); }, number);
  const Rounded out = rounded(wanted, dtype);
  bool holds = std::isfinite(out.number) || !std::isfinite(wanted);
  // 2^64 is no whole number of 64 bits: then it was rounded up to.
  if (const auto* n = std::get_if<int64_t>(&number))
    holds = holds && out.number < 0x1p63 && static_cast<int64_t>(out.number) == *n;
  if (const auto* n = std::get_if<uint64_t>(&number))
    holds = holds && out.number < 0x1p64 && static_cast<uint64_t>(out.number) == *n;
  if (holds) return out.stored;
  return invalid(fmt::format("the padding is {} and the values are {}, which does not hold it",
                             text_of(number), dtype_name(dtype)));
}

}  // namespace

Result<PadValue> pad_value(PadNumber number, DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return whole<uint8_t>(number, dtype);
    case DType::kI8:
      return whole<int8_t>(number, dtype);
    case DType::kU16:
      return whole<uint16_t>(number, dtype);
    case DType::kI16:
      return whole<int16_t>(number, dtype);
    case DType::kU32:
      return whole<uint32_t>(number, dtype);
    case DType::kI32:
      return whole<int32_t>(number, dtype);
    case DType::kU64:
      return whole<uint64_t>(number, dtype);
    case DType::kI64:
      return whole<int64_t>(number, dtype);
    default:
      return real(number, dtype);
  }
}

void PadValue::fill(MutableBytes elements, size_t item) const {
  if (elements.empty()) return;
  const std::byte first = element[0];
  if (std::all_of(element.begin(), element.begin() + static_cast<std::ptrdiff_t>(item),
                  [first](std::byte b) { return b == first; })) {
    std::memset(elements.data(), std::to_integer<int>(first), elements.size());
    return;
  }
  // One element, then all that is there again and again.
  std::memcpy(elements.data(), element.data(), item);
  for (size_t done = item; done < elements.size();) {
    const size_t n = std::min(done, elements.size() - done);
    std::memcpy(elements.data() + done, elements.data(), n);
    done += n;
  }
}

}  // namespace headrace
