// SPDX-License-Identifier: Apache-2.0
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/widen.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <cstring>

#include "codec/widen.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// `values` in lanes of `To`, by way of the type between where there is one.
template <typename Between, typename To, class D, class V>
HWY_INLINE auto promoted(D to, V values) {
  if constexpr (sizeof(Between) == sizeof(To)) {
    return hn::PromoteTo(to, values);
  } else {
    const hn::Rebind<Between, D> between;
    return hn::PromoteTo(to, hn::PromoteTo(between, values));
  }
}

constexpr size_t kVectors = 8;  // at a time: two lines of u32, one of u16

// Between: a type half as wide as To, or To where one step is enough.
template <typename From, typename Between, typename To>
void widen_all(const std::byte* from, std::byte* to, size_t count, const std::byte* next) {
  const hn::CappedTag<To, 32 / sizeof(To)> out;
  const hn::Rebind<From, decltype(out)> in;
  const size_t lanes = hn::Lanes(out);
  const size_t step = kVectors * lanes;
  size_t i = 0;
  // Bytes of any alignment: loaded and stored as such.
  for (; i + step <= count; i += step) {
    for (size_t line = 0; line < step * sizeof(From); line += 64)
      __builtin_prefetch(next + i * sizeof(From) + line);
    for (size_t k = 0; k < kVectors; ++k) {
      const auto v =
          hn::LoadU(in, reinterpret_cast<const From*>(from + (i + k * lanes) * sizeof(From)));
      hn::StoreU(promoted<Between, To>(out, v), out,
                 reinterpret_cast<To*>(to + (i + k * lanes) * sizeof(To)));
    }
  }
  if (i < count) __builtin_prefetch(next + (count - 1) * sizeof(From));
  for (; i < count; ++i)
    store_le(MutableBytes(to + i * sizeof(To), sizeof(To)),
             static_cast<To>(load_le<From>(Bytes(from + i * sizeof(From), sizeof(From)))));
}

void copy_vectors(const std::byte* from, std::byte* to, size_t bytes) {
  const hn::CappedTag<uint8_t, 32> all;
  const size_t lanes = hn::Lanes(all);
  const auto* in = reinterpret_cast<const uint8_t*>(from);
  auto* out = reinterpret_cast<uint8_t*>(to);
  size_t i = 0;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto a = hn::LoadU(all, in + i);
    const auto b = hn::LoadU(all, in + i + lanes);
    const auto c = hn::LoadU(all, in + i + 2 * lanes);
    const auto d = hn::LoadU(all, in + i + 3 * lanes);
    hn::StoreU(a, all, out + i);
    hn::StoreU(b, all, out + i + lanes);
    hn::StoreU(c, all, out + i + 2 * lanes);
    hn::StoreU(d, all, out + i + 3 * lanes);
  }
  if (i < bytes) std::memcpy(out + i, in + i, bytes - i);
}

void u8_u64(const std::byte* from, std::byte* to, size_t n, const std::byte*) {
  for (size_t i = 0; i < n; ++i)
    store_le(MutableBytes(to + 8 * i, 8), static_cast<uint64_t>(from[i]));
}
void u16_u64(const std::byte* from, std::byte* to, size_t n, const std::byte* next) {
  widen_all<uint16_t, uint32_t, uint64_t>(from, to, n, next);
}
void u32_u64(const std::byte* from, std::byte* to, size_t n, const std::byte* next) {
  widen_all<uint32_t, uint64_t, uint64_t>(from, to, n, next);
}
void i32_i64(const std::byte* from, std::byte* to, size_t n, const std::byte* next) {
  widen_all<int32_t, int64_t, int64_t>(from, to, n, next);
}
void u8_u32(const std::byte* from, std::byte* to, size_t n, const std::byte* next) {
  widen_all<uint8_t, uint32_t, uint32_t>(from, to, n, next);
}
void u16_u32(const std::byte* from, std::byte* to, size_t n, const std::byte* next) {
  widen_all<uint16_t, uint32_t, uint32_t>(from, to, n, next);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
namespace {
HWY_EXPORT(copy_vectors);
HWY_EXPORT(u8_u64);
HWY_EXPORT(u16_u64);
HWY_EXPORT(u32_u64);
HWY_EXPORT(i32_i64);
HWY_EXPORT(u8_u32);
HWY_EXPORT(u16_u32);
}  // namespace

bool widen(Bytes from, DType from_type, MutableBytes to, DType to_type, const std::byte* next) {
  if (next == nullptr) next = from.data();
  const size_t count = from.size() / size_of(from_type);
  const auto is = [&](DType a, DType b) { return from_type == a && to_type == b; };
  if (is(DType::kU16, DType::kI64))
    HWY_DYNAMIC_DISPATCH(u16_u64)(from.data(), to.data(), count, next);
  else if (is(DType::kI32, DType::kI64))
    HWY_DYNAMIC_DISPATCH(i32_i64)(from.data(), to.data(), count, next);
  else if (is(DType::kU32, DType::kI64))
    HWY_DYNAMIC_DISPATCH(u32_u64)(from.data(), to.data(), count, next);
  else if (is(DType::kU16, DType::kI32))
    HWY_DYNAMIC_DISPATCH(u16_u32)(from.data(), to.data(), count, next);
  else if (is(DType::kU8, DType::kI32))
    HWY_DYNAMIC_DISPATCH(u8_u32)(from.data(), to.data(), count, next);
  else if (is(DType::kU8, DType::kI64))
    HWY_DYNAMIC_DISPATCH(u8_u64)(from.data(), to.data(), count, next);
  else
    return false;
  return true;
}

void copy_row(Bytes from, MutableBytes to) {
  HWY_DYNAMIC_DISPATCH(copy_vectors)(from.data(), to.data(), from.size());
}

}  // namespace headrace
#endif
