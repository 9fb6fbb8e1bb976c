// SPDX-License-Identifier: Apache-2.0
#include "codec/elements.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <utility>

#include "base/half.h"
#include "codec/widen.h"

namespace headrace {
namespace {

template <typename T>
struct Plain {
  using Value = T;
  static constexpr size_t kBytes = sizeof(T);
  static T load(Bytes at) { return load_le<T>(at); }
  static void store(MutableBytes at, T v) { store_le(at, v); }
};

// Two bytes that are computed with as float.
template <float (*kFrom)(uint16_t), uint16_t (*kTo)(float), uint16_t kNan>
struct Short {
  using Value = float;
  static constexpr size_t kBytes = 2;
  static float load(Bytes at) { return kFrom(load_le<uint16_t>(at)); }
  static void store(MutableBytes at, float v) { store_le(at, std::isnan(v) ? kNan : kTo(v)); }
};
using Half = Short<from_f16, to_f16, 0x7e00>;
using BrainFloat = Short<from_bf16, to_bf16, 0x7fc0>;

template <std::integral To, std::integral From>
bool holds(From v) {
  return std::in_range<To>(v);
}

template <std::integral To, std::floating_point From>
bool holds(From v) {
  // 2^63 itself is a number of From and too large; NaN fails every comparison.
  const From low = static_cast<From>(std::numeric_limits<To>::min());
  const From high = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  return v >= low && v < high && v == std::floor(v);
}

template <typename From, typename To>
Status convert(Bytes from, MutableBytes to) {
  const size_t count = from.size() / From::kBytes;
  for (size_t i = 0; i < count; ++i) {
    const auto v = From::load(from.subspan(i * From::kBytes));
    if constexpr (std::integral<typename To::Value>) {
      if (!holds<typename To::Value>(v))
        return corrupt("element " + std::to_string(i) + " is " + std::to_string(v) +
                       ", which the type asked for cannot hold")
            .at(i * From::kBytes);
    }
    To::store(to.subspan(i * To::kBytes), static_cast<typename To::Value>(v));
  }
  return {};
}

// Calls f with the traits of a type.
template <typename F>
Status with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kU8:
      return f(Plain<uint8_t>());
    case DType::kI8:
      return f(Plain<int8_t>());
    case DType::kU16:
      return f(Plain<uint16_t>());
    case DType::kI16:
      return f(Plain<int16_t>());
    case DType::kU32:
      return f(Plain<uint32_t>());
    case DType::kI32:
      return f(Plain<int32_t>());
    case DType::kU64:
      return f(Plain<uint64_t>());
    case DType::kI64:
      return f(Plain<int64_t>());
    case DType::kF16:
      return f(Half());
    case DType::kBF16:
      return f(BrainFloat());
    case DType::kF32:
      return f(Plain<float>());
    case DType::kF64:
      return f(Plain<double>());
  }
  return internal("an unknown type");
}

std::string_view name_of_kind(char kind) {
  switch (kind) {
    case 'S':
    case 'U':
      return "texts";
    case 'V':
      return "raw records";
    case 'M':
    case 'm':
      return "dates or times";
    case 'c':
      return "complex numbers";
    default:
      return "numbers of a size that is not read";
  }
}

}  // namespace

Status convert_elements(Bytes from, DType from_type, MutableBytes to, DType to_type) {
  if (to.size() / size_of(to_type) != from.size() / size_of(from_type))
    return internal("no room for the elements");
  if (from_type == to_type) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    return {};
  }
  if (widen(from, from_type, to, to_type)) return {};
  return with_type(from_type, [&](auto source) {
    return with_type(to_type, [&](auto target) {
      return convert<decltype(source), decltype(target)>(from, to);
    });
  });
}

Result<NpyArray> open_npy(Bytes head, uint64_t total) {
  NpyArray out;
  HEADRACE_ASSIGN(out.header, parse_npy(head, total));
  const auto dtype = out.header.type.dtype();
  if (!dtype)
    return unsupported(".npy: its elements are " + std::string(name_of_kind(out.header.type.kind)) +
                       " ('" + out.header.type.descr.substr(0, 16) +
                       "'), not numbers of 1 to 8 bytes");
  out.dtype = *dtype;
  out.shape.assign(out.header.shape.begin(), out.header.shape.end());
  return out;
}

bool NpyArray::is_plain() const {
  return (!header.fortran_order || shape.size() < 2) &&
         (!header.type.big_endian || header.type.item_bytes == 1);
}

Status NpyArray::copy(Bytes file, MutableBytes to) const {
  if (header.items == 0) return {};
  std::memcpy(to.data(), file.data() + header.data, to.size());
  return normalise_npy(header, to);
}

}  // namespace headrace
