// SPDX-License-Identifier: Apache-2.0
#include "array/shuffle.h"

#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "array/shuffle.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

size_t merge(const uint8_t* const*, size_t, size_t, uint8_t*, bool) {
  return 0;
}

#else
namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<uint8_t, 32> d8;
const hn::Repartition<uint16_t, decltype(d8)> d16;
const hn::Repartition<uint32_t, decltype(d8)> d32;
using V = hn::Vec<decltype(d8)>;

// Units of D's width of a and b by turns; within each 16 bytes, as the instructions have it.
template <typename D>
HWY_INLINE void zip(D d, V a, V b, V& low, V& high) {
  const auto x = hn::BitCast(d, a);
  const auto y = hn::BitCast(d, b);
  low = hn::BitCast(d8, hn::InterleaveLower(d, x, y));
  high = hn::BitCast(d8, hn::InterleaveUpper(d, x, y));
}

template <bool kPast>
HWY_INLINE void put(V v, uint8_t* to) {
  if constexpr (kPast)
    hn::Stream(v, d8, to);
  else
    hn::StoreU(v, d8, to);
}

// `v` in the order in which zip() gives them: of registers of 32 bytes all lower halves come first.
template <bool kPast, size_t kCount>
HWY_INLINE void put_all(const V* v, uint8_t* to) {
  const size_t lanes = hn::Lanes(d8);
  if (lanes == 16) {
    for (size_t k = 0; k < kCount; ++k) put<kPast>(v[k], to + k * lanes);
    return;
  }
  for (size_t k = 0; k < kCount; k += 2) {
    put<kPast>(hn::ConcatLowerLower(d8, v[k + 1], v[k]), to + k / 2 * lanes);
    put<kPast>(hn::ConcatUpperUpper(d8, v[k + 1], v[k]), to + (kCount + k) / 2 * lanes);
  }
}

template <bool kPast>
HWY_INLINE void two(const uint8_t* const* planes, size_t i, uint8_t* to) {
  V out[2];
  zip(d8, hn::LoadU(d8, planes[0] + i), hn::LoadU(d8, planes[1] + i), out[0], out[1]);
  put_all<kPast, 2>(out, to);
}

// Of four planes the first to the last quarter of the elements.
HWY_INLINE void quarters(const uint8_t* const* planes, size_t i, V* out) {
  V low[2];
  V high[2];
  zip(d8, hn::LoadU(d8, planes[0] + i), hn::LoadU(d8, planes[1] + i), low[0], high[0]);
  zip(d8, hn::LoadU(d8, planes[2] + i), hn::LoadU(d8, planes[3] + i), low[1], high[1]);
  zip(d16, low[0], low[1], out[0], out[1]);
  zip(d16, high[0], high[1], out[2], out[3]);
}

template <bool kPast>
HWY_INLINE void four(const uint8_t* const* planes, size_t i, uint8_t* to) {
  V out[4];
  quarters(planes, i, out);
  put_all<kPast, 4>(out, to);
}

template <bool kPast>
HWY_INLINE void eight(const uint8_t* const* planes, size_t i, uint8_t* to) {
  V low[4];
  V high[4];
  V out[8];
  quarters(planes, i, low);
  quarters(planes + 4, i, high);
  for (size_t k = 0; k < 4; ++k) zip(d32, low[k], high[k], out[2 * k], out[2 * k + 1]);
  put_all<kPast, 8>(out, to);
}

template <size_t kItem, bool kPast>
size_t merge_registers(const uint8_t* const* planes, size_t count, uint8_t* to) {
  const size_t lanes = hn::Lanes(d8);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if constexpr (kItem == 2) two<kPast>(planes, i, to + i * kItem);
    if constexpr (kItem == 4) four<kPast>(planes, i, to + i * kItem);
    if constexpr (kItem == 8) eight<kPast>(planes, i, to + i * kItem);
  }
  return i;
}

template <size_t kItem>
size_t merge_of(const uint8_t* const* planes, size_t count, uint8_t* to, bool past) {
  return past ? merge_registers<kItem, true>(planes, count, to)
              : merge_registers<kItem, false>(planes, count, to);
}

// As many elements as whole registers hold; says how many.  `past` asks for aligned `to`.
size_t merge(const uint8_t* const* planes, size_t item, size_t count, uint8_t* to, bool past) {
  switch (item) {
    case 2:
      return merge_of<2>(planes, count, to, past);
    case 4:
      return merge_of<4>(planes, count, to, past);
    case 8:
      return merge_of<8>(planes, count, to, past);
    default:
      return 0;
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
namespace {

HWY_EXPORT(merge);

constexpr size_t kRegister = 32;        // the widest; what goes past the cache is aligned to it
constexpr size_t kPastCache = 1 << 16;  // less fits into the cache beside what is read

using Plane = const uint8_t*;
using Planes = std::array<Plane, kMostPlanes>;

void merge_one_by_one(const Planes& planes, size_t item, size_t begin, size_t end, uint8_t* to) {
  for (size_t b = 0; b < item; ++b)
    for (size_t i = begin; i < end; ++i) to[i * item + b] = planes[b][i];
}

// Elements before the first that is aligned; all where none is.
size_t before_aligned(const uint8_t* to, size_t item, size_t count) {
  const size_t missing = (kRegister - reinterpret_cast<uintptr_t>(to) % kRegister) % kRegister;
  return missing % item == 0 ? std::min(count, missing / item) : count;
}

void merge_all(Planes& planes, size_t item, size_t count, uint8_t* to, NextUse next_use) {
  const bool is_long = next_use == NextUse::kRest && count * item >= kPastCache;
  const size_t head = is_long ? before_aligned(to, item, count) : count;
  const bool past = head < count;
  if (past) {
    merge_one_by_one(planes, item, 0, head, to);
    for (size_t b = 0; b < item; ++b) planes[b] += head;
    to += head * item;
    count -= head;
  }
  const size_t done = HWY_DYNAMIC_DISPATCH(merge)(planes.data(), item, count, to, past);
  merge_one_by_one(planes, item, done, count, to);
  if (past) hwy::FlushStream();
}

}  // namespace

void merge_planes(std::span<const std::byte* const> planes, MutableBytes out, NextUse next_use) {
  const size_t item = std::min(planes.size(), kMostPlanes);
  if (item == 0) return;
  Planes moved{};
  for (size_t b = 0; b < item; ++b) moved[b] = reinterpret_cast<Plane>(planes[b]);
  merge_all(moved, item, out.size() / item, reinterpret_cast<uint8_t*>(out.data()), next_use);
}

void undo_shuffle(Bytes in, MutableBytes out, size_t item, NextUse next_use) {
  const size_t count = in.size() / std::max<size_t>(1, item);
  if (item < 2 || count < 2) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  if (item <= kMostPlanes) {
    Planes planes{};
    for (size_t b = 0; b < item; ++b) planes[b] = reinterpret_cast<Plane>(in.data()) + b * count;
    merge_all(planes, item, count, reinterpret_cast<uint8_t*>(out.data()), next_use);
  } else {
    for (size_t b = 0; b < item; ++b)
      for (size_t i = 0; i < count; ++i) out[i * item + b] = in[b * count + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(count * item), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(count * item));
}

}  // namespace headrace
#endif
