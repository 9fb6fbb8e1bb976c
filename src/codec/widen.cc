// SPDX-License-Identifier: Apache-2.0
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/widen.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

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

// Between: a type half as wide as To, or To where one step is enough.
template <typename From, typename Between, typename To>
void widen_all(const std::byte* from, std::byte* to, size_t count) {
  const hn::CappedTag<To, 32 / sizeof(To)> out;
  const hn::Rebind<From, decltype(out)> in;
  const size_t lanes = hn::Lanes(out);
  size_t i = 0;
  // Bytes of any alignment: loaded and stored as such.
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (size_t k = 0; k < 4; ++k) {
      const auto v =
          hn::LoadU(in, reinterpret_cast<const From*>(from + (i + k * lanes) * sizeof(From)));
      hn::StoreU(promoted<Between, To>(out, v), out,
                 reinterpret_cast<To*>(to + (i + k * lanes) * sizeof(To)));
    }
  for (; i < count; ++i)
    store_le(MutableBytes(to + i * sizeof(To), sizeof(To)),
             static_cast<To>(load_le<From>(Bytes(from + i * sizeof(From), sizeof(From)))));
}

void u8_u64(const std::byte* from, std::byte* to, size_t n) {
  for (size_t i = 0; i < n; ++i)
    store_le(MutableBytes(to + 8 * i, 8), static_cast<uint64_t>(from[i]));
}
void u16_u64(const std::byte* from, std::byte* to, size_t n) {
  widen_all<uint16_t, uint32_t, uint64_t>(from, to, n);
}
void u32_u64(const std::byte* from, std::byte* to, size_t n) {
  widen_all<uint32_t, uint64_t, uint64_t>(from, to, n);
}
void i32_i64(const std::byte* from, std::byte* to, size_t n) {
  widen_all<int32_t, int64_t, int64_t>(from, to, n);
}
void u8_u32(const std::byte* from, std::byte* to, size_t n) {
  widen_all<uint8_t, uint32_t, uint32_t>(from, to, n);
}
void u16_u32(const std::byte* from, std::byte* to, size_t n) {
  widen_all<uint16_t, uint32_t, uint32_t>(from, to, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
namespace {
HWY_EXPORT(u8_u64);
HWY_EXPORT(u16_u64);
HWY_EXPORT(u32_u64);
HWY_EXPORT(i32_i64);
HWY_EXPORT(u8_u32);
HWY_EXPORT(u16_u32);
}  // namespace

bool widen(Bytes from, DType from_type, MutableBytes to, DType to_type) {
  const size_t count = from.size() / size_of(from_type);
  const auto is = [&](DType a, DType b) { return from_type == a && to_type == b; };
  if (is(DType::kU16, DType::kI64))
    HWY_DYNAMIC_DISPATCH(u16_u64)(from.data(), to.data(), count);
  else if (is(DType::kI32, DType::kI64))
    HWY_DYNAMIC_DISPATCH(i32_i64)(from.data(), to.data(), count);
  else if (is(DType::kU32, DType::kI64))
    HWY_DYNAMIC_DISPATCH(u32_u64)(from.data(), to.data(), count);
  else if (is(DType::kU16, DType::kI32))
    HWY_DYNAMIC_DISPATCH(u16_u32)(from.data(), to.data(), count);
  else if (is(DType::kU8, DType::kI32))
    HWY_DYNAMIC_DISPATCH(u8_u32)(from.data(), to.data(), count);
  else if (is(DType::kU8, DType::kI64))
    HWY_DYNAMIC_DISPATCH(u8_u64)(from.data(), to.data(), count);
  else
    return false;
  return true;
}

}  // namespace headrace
#endif
