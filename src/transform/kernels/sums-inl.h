// SPDX-License-Identifier: Apache-2.0
//
// Sums of weighted pixels in vectors, for the two passes of the resampler.  Included once per
// instruction set, after hwy/highway.h.
#if defined(HEADRACE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_SUMS_INL_H_
#undef HEADRACE_SUMS_INL_H_
#else
#define HEADRACE_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "transform/kernels/taps.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<uint8_t, 32> d8;
const hn::Repartition<int16_t, decltype(d8)> d16;
const hn::Repartition<int32_t, decltype(d8)> d32;
using V8 = hn::Vec<decltype(d8)>;
using V16 = hn::Vec<decltype(d16)>;
using V32 = hn::Vec<decltype(d32)>;
constexpr int kBlocks = static_cast<int>(hn::MaxLanes(d8) / 16);

constexpr int kFraction = 7;

// Both weights of a pair, in every pair of lanes.
HWY_INLINE V16 weights(const int16_t* pair) {
  int32_t bits;
  std::memcpy(&bits, pair, sizeof bits);
  return hn::BitCast(d16, hn::Set(d32, bits));
}

// Sums of products of neighbouring lanes.  Where the instruction set adds lanes in another
// order, `second` keeps them apart until value().  The constructors are spelt out: one that the
// compiler makes lacks the target attribute, and GCC then refuses to inline it.
struct Sum {
  V32 first;
  V32 second;
  HWY_INLINE Sum() : first(hn::Zero(d32)), second(hn::Zero(d32)) {}
  HWY_INLINE void add(V16 pixels, V16 w) {
    first = hn::ReorderWidenMulAccumulate(d32, pixels, w, first, second);
  }
  HWY_INLINE V32 value() const { return hn::RearrangeToOddPlusEven(first, second); }
};

// By weights in two parts (taps.h).
struct ExactSum {
  Sum high;
  Sum low;
  HWY_INLINE ExactSum() {}
  HWY_INLINE void add(V16 pixels, V16 high_weights, V16 low_weights) {
    high.add(pixels, high_weights);
    low.add(pixels, low_weights);
  }
  // With kFraction bits of fraction left: all that rounding needs, and little enough for 16 bits.
  HWY_INLINE V32 value() const {
    return hn::ShiftRight<kWeightBits - kFraction>(
        hn::Add(hn::ShiftLeft<kSplitBits>(high.value()), low.value()));
  }
};

// Four vectors of sums, rounded and clipped to bytes; in each 128-bit block a's, b's, c's, then
// d's.
HWY_INLINE V8 rounded(V32 a, V32 b, V32 c, V32 d) {
  // (x * 2^(15 - kFraction) + 2^14) >> 15: the fraction, rounded off.
  const V16 off = hn::Set(d16, 1 << (15 - kFraction));
  const V16 ab = hn::MulFixedPoint15(hn::ReorderDemote2To(d16, a, b), off);
  const V16 cd = hn::MulFixedPoint15(hn::ReorderDemote2To(d16, c, d), off);
#if HWY_TARGET == HWY_AVX2
  return V8{_mm256_packus_epi16(ab.raw, cd.raw)};
#else
  const hn::Half<decltype(d8)> half;
  return hn::Combine(d8, hn::DemoteTo(half, cd), hn::DemoteTo(half, ab));
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#endif  // the guard: Highway toggles it
