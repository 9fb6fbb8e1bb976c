// SPDX-License-Identifier: Apache-2.0
//
// The kernels in vectors of up to 256 bits, compiled for each instruction set that Highway
// knows and chosen once at run time.
//
// across: a pixel's taps lie one after the other, so one 16-byte load holds four of them
// (RGB); two shuffles pair them up by channel, and each multiply-add does two taps of all
// channels.  With 256 bits the two halves are two rows.
//
//   r0 g0 b0 r1 g1 b1 r2 g2 b2 r3 g3 b3 ..   ──►  r0 r1 g0 g1 b0 b1 0 0 ,  r2 r3 g2 g3 b2 b3 0 0
//
// down: two rows interleaved byte by byte are pairs already.

// Nothing wider than 256 bits, nothing of unknown width.
#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels_simd.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <cstring>

#include "transform/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace headrace {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

const Kernels& get() { return scalar_kernels(); }

#else
namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<uint8_t, 32> d8;
const hn::Repartition<int16_t, decltype(d8)> d16;
const hn::Repartition<int32_t, decltype(d8)> d32;
using V8 = hn::Vec<decltype(d8)>;
using V16 = hn::Vec<decltype(d16)>;
using V32 = hn::Vec<decltype(d32)>;
constexpr int kBlocks = static_cast<int>(hn::MaxLanes(d8) / 16);

// Sums of products of neighbouring 16-bit lanes.  Where the instruction set adds lanes in
// another order, the second half keeps them apart until value().
struct Sum {
  V32 first;
  V32 second;
  // Spelt out: a constructor that the compiler makes lacks the target attribute.
  HWY_INLINE Sum() : first(hn::Zero(d32)), second(hn::Zero(d32)) {}
  HWY_INLINE void add(V16 pixels, V16 weights) {
    first = hn::ReorderWidenMulAccumulate(d32, pixels, weights, first, second);
  }
  HWY_INLINE V32 value() const { return hn::RearrangeToOddPlusEven(first, second); }
};

HWY_INLINE V16 both(const int16_t* pair) {
  int32_t bits;
  std::memcpy(&bits, pair, 4);
  return hn::BitCast(d16, hn::Set(d32, bits));
}

struct Exact {
  Sum high;
  Sum low;
  HWY_INLINE Exact() {}
  HWY_INLINE void add(V16 pixels, const TapPair& taps) {
    high.add(pixels, both(taps.high));
    low.add(pixels, both(taps.low));
  }
  // The weighted pixels, rounded, not yet clipped.
  HWY_INLINE V32 value() const {
    const V32 sum = hn::Add(hn::ShiftLeft<kSplitBits>(high.value()), low.value());
    return hn::ShiftRight<kWeightBits>(hn::Add(sum, hn::Set(d32, kRound)));
  }
};

// Clips to 0..255, each 128-bit block by itself: a's lanes, then b's.
HWY_INLINE V8 pack(V16 a, V16 b) {
#if HWY_TARGET == HWY_AVX2
  return V8{_mm256_packus_epi16(a.raw, b.raw)};
#else
  const hn::Half<decltype(d8)> half;
  return hn::Combine(d8, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#endif
}

HWY_INLINE V8 pack4(V32 a, V32 b, V32 c, V32 d) {
  return pack(hn::ReorderDemote2To(d16, a, b), hn::ReorderDemote2To(d16, c, d));
}

// ---- across ----

alignas(16) constexpr uint8_t kPair0[16] = {0, 128, 3, 128, 1, 128, 4, 128, 2, 128, 5, 128, 128, 128, 128, 128};
alignas(16) constexpr uint8_t kPair1[16] = {6, 128, 9, 128, 7, 128, 10, 128, 8, 128, 11, 128, 128, 128, 128, 128};
// Four pixels of four channels to four channels of four pixels.
alignas(16) constexpr uint8_t kPlanar[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

template <typename V>
HWY_INLINE void put8(V lanes, size_t which, uint8_t* out) {
  const uint64_t bits = hn::ExtractLane(lanes, which);
  std::memcpy(out, &bits, 8);
}

// 16 bytes of each of kBlocks rows.
HWY_INLINE V8 load_rows(const uint8_t* const* rows, ptrdiff_t at) {
#if HWY_TARGET == HWY_AVX2
  const hn::Half<decltype(d8)> block;
  return hn::Combine(d8, hn::LoadU(block, rows[1] + at), hn::LoadU(block, rows[0] + at));
#else
  return hn::LoadU(d8, rows[0] + at);
#endif
}

// Rows that go through together: two vectors, so that each weight is loaded once for both.
constexpr int kGroup = 2 * kBlocks;

struct Two {
  Exact a;
  Exact b;
  HWY_INLINE Two() {}
  HWY_INLINE void add(V8 pixels_a, V8 pixels_b, V8 pairing, const TapPair& taps) {
    const V16 high = both(taps.high);
    const V16 low = both(taps.low);
    const V16 pa = hn::BitCast(d16, hn::TableLookupBytesOr0(pixels_a, pairing));
    const V16 pb = hn::BitCast(d16, hn::TableLookupBytesOr0(pixels_b, pairing));
    a.high.add(pa, high);
    a.low.add(pa, low);
    b.high.add(pb, high);
    b.low.add(pb, low);
  }
};

// One output of kGroup rows: for each row four 32-bit lanes of channels.
template <int kPairs>  // 1, 2, or 0 for any even number
HWY_INLINE void one(const uint8_t* const* rows, int32_t start, const TapPair* taps, int pairs, V32& a, V32& b) {
  const V8 pair0 = hn::LoadDup128(d8, kPair0);
  const V8 pair1 = hn::LoadDup128(d8, kPair1);
  ptrdiff_t at = static_cast<ptrdiff_t>(start) * 3;
  Two sum;
  const int n = kPairs == 0 ? pairs : kPairs;
  for (int k = 0; k < n; k += 2, at += 12) {
    const V8 pixels_a = load_rows(rows, at);
    const V8 pixels_b = load_rows(rows + kBlocks, at);
    sum.add(pixels_a, pixels_b, pair0, taps[k]);
    if constexpr (kPairs != 1) sum.add(pixels_a, pixels_b, pair1, taps[k + 1]);
  }
  a = sum.a.value();
  b = sum.b.value();
}

template <int kPairs>
HWY_INLINE void four(const uint8_t* const* rows, const int32_t* starts, const TapPair* taps, int pairs, V8& a, V8& b) {
  V32 a0, a1, a2, a3, b0, b1, b2, b3;
  one<kPairs>(rows, starts[0], taps, pairs, a0, b0);
  one<kPairs>(rows, starts[1], taps + pairs, pairs, a1, b1);
  one<kPairs>(rows, starts[2], taps + 2 * pairs, pairs, a2, b2);
  one<kPairs>(rows, starts[3], taps + 3 * pairs, pairs, a3, b3);
  const V8 planar = hn::LoadDup128(d8, kPlanar);
  a = hn::TableLookupBytes(pack4(a0, a1, a2, a3), planar);
  b = hn::TableLookupBytes(pack4(b0, b1, b2, b3), planar);
}

HWY_INLINE void put_planes(V8 first, V8 second, const AcrossRow* rows, int i, size_t plane) {
  const hn::Repartition<uint32_t, decltype(d8)> du32;
  const hn::Repartition<uint64_t, decltype(d8)> du64;
  const auto a = hn::BitCast(du32, first);
  const auto b = hn::BitCast(du32, second);
  const auto rg = hn::BitCast(du64, hn::InterleaveLower(du32, a, b));
  const auto bx = hn::BitCast(du64, hn::InterleaveUpper(du32, a, b));
  for (size_t r = 0; r < static_cast<size_t>(kBlocks); ++r) {
    uint8_t* out = rows[r].out + i;
    put8(rg, 2 * r, out);
    put8(rg, 2 * r + 1, out + plane);
    put8(bx, 2 * r, out + 2 * plane);
  }
}

template <int kPairs>
void across_rows(const AcrossRow* rows, size_t plane, const Taps& taps) {
  const uint8_t* in[kGroup];
  for (int r = 0; r < kGroup; ++r) in[r] = rows[r].in;
  const int pairs = kPairs == 0 ? taps.pairs() : kPairs;
  const int32_t* starts = taps.starts();
  const TapPair* weights = taps.weights(0);
  const int count = taps.count();
  for (int i = 0; i < count; i += 8, starts += 8, weights += 8 * pairs) {
    V8 a0, a1, b0, b1;
    four<kPairs>(in, starts, weights, pairs, a0, b0);
    four<kPairs>(in, starts + 4, weights + 4 * pairs, pairs, a1, b1);
    put_planes(a0, a1, rows, i, plane);
    put_planes(b0, b1, rows + kBlocks, i, plane);
  }
}

void across(const AcrossRow* rows, int count, int channels, size_t plane, const Taps& taps) {
  if (channels != 3) return scalar_kernels().across(rows, count, channels, plane, taps);
  for (int r = 0; r < count; r += kGroup) {
    // Where rows are missing the last one is done again.
    AcrossRow group[kGroup];
    for (int k = 0; k < kGroup; ++k) group[k] = rows[r + k < count ? r + k : count - 1];
    if (taps.pairs() == 1)
      across_rows<1>(group, plane, taps);
    else if (taps.pairs() == 2)
      across_rows<2>(group, plane, taps);
    else
      across_rows<0>(group, plane, taps);
  }
}

// ---- down ----

template <int kPairs>  // 1, 2, 3 or 0 for any
HWY_INLINE V8 column(const uint8_t* const* rows, size_t at, const TapPair* taps, int pairs) {
  Exact sum[4];
  const int n = kPairs == 0 ? pairs : kPairs;
  const V8 zero = hn::Zero(d8);
  for (int k = 0; k < n; ++k) {
    const V8 a = hn::LoadU(d8, rows[2 * k] + at);
    const V8 b = hn::LoadU(d8, rows[2 * k + 1] + at);
    const V8 lower = hn::InterleaveLower(d8, a, b);
    const V8 upper = hn::InterleaveUpper(d8, a, b);
    sum[0].add(hn::BitCast(d16, hn::InterleaveLower(d8, lower, zero)), taps[k]);
    sum[1].add(hn::BitCast(d16, hn::InterleaveUpper(d8, lower, zero)), taps[k]);
    sum[2].add(hn::BitCast(d16, hn::InterleaveLower(d8, upper, zero)), taps[k]);
    sum[3].add(hn::BitCast(d16, hn::InterleaveUpper(d8, upper, zero)), taps[k]);
  }
  return pack4(sum[0].value(), sum[1].value(), sum[2].value(), sum[3].value());
}

template <int kPairs>
void down_row(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n, uint8_t* out) {
  constexpr size_t kLanes = static_cast<size_t>(16 * kBlocks);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(column<kPairs>(rows, offset + i, taps, pairs), d8, out + i);
  if (i == n) return;
  alignas(32) uint8_t tail[kLanes];
  hn::Store(column<kPairs>(rows, offset + i, taps, pairs), d8, tail);
  std::memcpy(out + i, tail, n - i);
}

void down(const uint8_t* const* rows, size_t offset, const TapPair* taps, int pairs, size_t n, uint8_t* out) {
  switch (pairs) {
    case 1: return down_row<1>(rows, offset, taps, 1, n, out);
    case 2: return down_row<2>(rows, offset, taps, 2, n, out);
    default: return down_row<0>(rows, offset, taps, pairs, n, out);
  }
}

// ---- split and store ----

void split(const AcrossRow& row, int pixels, int channels, size_t plane, bool reverse) {
  scalar_kernels().split(row, pixels, channels, plane, reverse);
}

const hn::CappedTag<float, 8> df;
const hn::Rebind<int32_t, decltype(df)> di;
const hn::Rebind<uint8_t, decltype(df)> dq;
using VF = hn::Vec<decltype(df)>;

HWY_INLINE VF scaled(const uint8_t* in, VF scale, VF bias) {
  return hn::MulAdd(hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(dq, in))), scale, bias);
}

void planes_f32(const uint8_t* row, size_t plane, int pixels, int channels, const Store& store,
                std::byte* out, size_t out_plane_bytes) {
  const size_t n = static_cast<size_t>(pixels);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const VF scale = hn::Set(df, store.scale[c]);
    const VF bias = hn::Set(df, store.bias[c]);
    const uint8_t* in = row + c * plane;
    float* to = reinterpret_cast<float*>(out + c * out_plane_bytes);
    size_t i = 0;
    for (; i + hn::Lanes(df) <= n; i += hn::Lanes(df)) hn::StoreU(scaled(in + i, scale, bias), df, to + i);
    if (i == n) continue;
    HWY_ALIGN float tail[8];
    hn::Store(scaled(in + i, scale, bias), df, tail);
    std::memcpy(to + i, tail, (n - i) * sizeof(float));
  }
}

const Kernels& get() {
  static const Kernels kernels = [] {
    Kernels k = scalar_kernels();
    k.name = hwy::TargetName(HWY_TARGET);
    k.across = across;
    k.down = down;
    k.split = split;
    k.planes[3] = planes_f32;
    return k;
  }();
  return kernels;
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(get);
const Kernels& vector_kernels() {
  static const Kernels& best = HWY_DYNAMIC_DISPATCH(get)();
  return best;
}
}  // namespace headrace
#endif
