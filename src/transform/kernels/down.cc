// SPDX-License-Identifier: Apache-2.0
//
// The vertical pass in vectors: two rows interleaved byte by byte are pairs of taps already.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/down.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <cstring>

#include "transform/kernels/kernels.h"
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "transform/kernels/sums-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void fill(Kernels&) {}

#else

// A vector of bytes of two rows, weighed, onto the sums of its quarters.
struct Column {
  ExactSum a, b, c, d;  // named, not an array: GCC keeps arrays of vectors in memory
  HWY_INLINE Column() {}
  HWY_INLINE void add(V8 first, V8 second, V16 high, V16 low) {
    const V8 zero = hn::Zero(d8);
    const V8 lower = hn::InterleaveLower(d8, first, second);
    const V8 upper = hn::InterleaveUpper(d8, first, second);
    a.add(hn::BitCast(d16, hn::InterleaveLower(d8, lower, zero)), high, low);
    b.add(hn::BitCast(d16, hn::InterleaveUpper(d8, lower, zero)), high, low);
    c.add(hn::BitCast(d16, hn::InterleaveLower(d8, upper, zero)), high, low);
    d.add(hn::BitCast(d16, hn::InterleaveUpper(d8, upper, zero)), high, low);
  }
  HWY_INLINE V8 value() const { return rounded(a.value(), b.value(), c.value(), d.value()); }
};

// Two rows and their weights.
struct RowPair {
  const uint8_t* r0;
  const uint8_t* r1;
  V16 high;
  V16 low;
  HWY_INLINE RowPair(const uint8_t* const* rows, size_t offset, const TapPair& taps)
      : r0(rows[0] + offset),
        r1(rows[1] + offset),
        high(weights(taps.high)),
        low(weights(taps.low)) {}
  HWY_INLINE void add_to(Column& sum, size_t i) const {
    sum.add(hn::LoadU(d8, r0 + i), hn::LoadU(d8, r1 + i), high, low);
  }
};

// Whole vectors, then what is left through a buffer.  `column` gives the vector at i.
template <typename F>
HWY_INLINE void for_each_vector(size_t n, uint8_t* out, const F& column) {
  constexpr size_t kLanes = static_cast<size_t>(16 * kBlocks);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(column(i), d8, out + i);
  if (i == n) return;
  alignas(32) uint8_t tail[kLanes];
  hn::Store(column(i), d8, tail);
  std::memcpy(out + i, tail, n - i);
}

void down1(const uint8_t* const* rows, size_t offset, const TapPair* taps, size_t n, uint8_t* out) {
  const RowPair pair(rows, offset, taps[0]);
  for_each_vector(n, out, [&](size_t i) HWY_ATTR {
    Column sum;
    pair.add_to(sum, i);
    return sum.value();
  });
}

void down2(const uint8_t* const* rows, size_t offset, const TapPair* taps, size_t n, uint8_t* out) {
  const RowPair pair0(rows, offset, taps[0]);
  const RowPair pair1(rows + 2, offset, taps[1]);
  for_each_vector(n, out, [&](size_t i) HWY_ATTR {
    Column sum;
    pair0.add_to(sum, i);
    pair1.add_to(sum, i);
    return sum.value();
  });
}

void down_many(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n,
               uint8_t* out) {
  for_each_vector(n, out, [&](size_t i) HWY_ATTR {
    Column sum;
    for (int k = 0; k < pairs; ++k) RowPair(rows + 2 * k, offset, taps[k]).add_to(sum, i);
    return sum.value();
  });
}

void down(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n,
          uint8_t* out) {
  switch (pairs) {
    case 1:
      return down1(rows, offset, taps, n, out);
    case 2:
      return down2(rows, offset, taps, n, out);
    default:
      return down_many(rows, offset, taps, pairs, n, out);
  }
}

void fill(Kernels& kernels) {
  kernels.down = down;
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(fill);
void use_vector_down(Kernels& kernels) {
  HWY_DYNAMIC_DISPATCH(fill)(kernels);
}
}  // namespace headrace
#endif
