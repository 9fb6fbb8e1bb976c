// SPDX-License-Identifier: Apache-2.0
//
// The horizontal pass in vectors of up to 256 bits, compiled for each instruction set that
// Highway knows and chosen once at run time.
//
// The taps of a pixel lie one after the other, so one 16-byte load holds four of them.  Two
// shuffles pair them up by channel, each multiply-add does two taps of all channels:
//
//   r0 g0 b0 r1 g1 b1 r2 g2 b2 r3 g3 b3 ..   ──►  r0 r1 g0 g1 b0 b1 . . ,  r2 r3 g2 g3 b2 b3 . .
//
// The halves of a 256-bit vector are two rows.  Of gray rows four stand in for the channels.
#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/kernels/across.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <algorithm>
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

// Rows of kChannels that fill a vector, and rows that go through together: two vectors, so that
// each weight is loaded once for both.
template <int kChannels>
constexpr int kRows = kChannels == 1 ? 4 * kBlocks : kBlocks;
template <int kChannels>
constexpr int kGroup = 2 * kRows<kChannels>;

// Shuffles that pair up taps 0 and 1, and taps 2 and 3; 128 gives 0.
template <int kChannels>
struct Pairing;
template <>
struct Pairing<1> {
  alignas(16) static constexpr uint8_t k01[16] = {0, 128, 1, 128, 4,  128, 5,  128,
                                                  8, 128, 9, 128, 12, 128, 13, 128};
  alignas(16) static constexpr uint8_t k23[16] = {2,  128, 3,  128, 6,  128, 7,  128,
                                                  10, 128, 11, 128, 14, 128, 15, 128};
};
template <>
struct Pairing<3> {
  alignas(16) static constexpr uint8_t k01[16] = {0, 128, 3, 128, 1,   128, 4,   128,
                                                  2, 128, 5, 128, 128, 128, 128, 128};
  alignas(16) static constexpr uint8_t k23[16] = {6, 128, 9,  128, 7,   128, 10,  128,
                                                  8, 128, 11, 128, 128, 128, 128, 128};
};
template <>
struct Pairing<4> {
  alignas(16) static constexpr uint8_t k01[16] = {0, 128, 4, 128, 1, 128, 5, 128,
                                                  2, 128, 6, 128, 3, 128, 7, 128};
  alignas(16) static constexpr uint8_t k23[16] = {8,  128, 12, 128, 9,  128, 13, 128,
                                                  10, 128, 14, 128, 11, 128, 15, 128};
};

// Four pixels of four channels to four channels of four pixels.
alignas(16) constexpr uint8_t kPlanar[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

// Four taps of each row that fits into the vector.
template <int kChannels>
HWY_INLINE V8 load_taps(const uint8_t* const* rows, ptrdiff_t at) {
  if constexpr (kChannels == 1) {
    alignas(32) uint32_t four[4 * kBlocks];
    for (int r = 0; r < 4 * kBlocks; ++r) std::memcpy(&four[r], rows[r] + at, 4);
    return hn::BitCast(d8, hn::Load(hn::Repartition<uint32_t, decltype(d8)>(), four));
  } else {
#if HWY_TARGET == HWY_AVX2
    const hn::Half<decltype(d8)> block;
    return hn::Combine(d8, hn::LoadU(block, rows[1] + at), hn::LoadU(block, rows[0] + at));
#else
    return hn::LoadU(d8, rows[0] + at);
#endif
  }
}

// One output of two vectors of rows; each row has four lanes, its channels.
template <int kChannels, int kPairs>  // kPairs: 1, 2, or 0 for any even number
HWY_INLINE void one(const uint8_t* const* rows, const Taps& taps, int i, V32& a, V32& b) {
  ptrdiff_t at = static_cast<ptrdiff_t>(taps.start(i)) * kChannels;
  const TapPair* w =
      taps.weights(0) + static_cast<ptrdiff_t>(i) * (kPairs == 0 ? taps.pairs() : kPairs);
  ExactSum sum_a;
  ExactSum sum_b;
  const auto add = [&](V8 pixels_a, V8 pixels_b, const uint8_t* pairing,
                       const TapPair& t) HWY_ATTR {
    const V8 shuffle = hn::LoadDup128(d8, pairing);
    const V16 high = weights(t.high);
    const V16 low = weights(t.low);
    sum_a.add(hn::BitCast(d16, hn::TableLookupBytesOr0(pixels_a, shuffle)), high, low);
    sum_b.add(hn::BitCast(d16, hn::TableLookupBytesOr0(pixels_b, shuffle)), high, low);
  };
  // Of many taps those that the edge cut off are not read: they lie beyond the slack.
  const int n = kPairs == 0 ? (taps.used(i) + 3) / 4 * 2 : kPairs;
  for (int k = 0; k < n; k += 2, at += 4 * kChannels) {
    const V8 pixels_a = load_taps<kChannels>(rows, at);
    const V8 pixels_b = load_taps<kChannels>(rows + kRows<kChannels>, at);
    add(pixels_a, pixels_b, Pairing<kChannels>::k01, w[k]);
    if constexpr (kPairs != 1) add(pixels_a, pixels_b, Pairing<kChannels>::k23, w[k + 1]);
  }
  a = sum_a.value();
  b = sum_b.value();
}

// Outputs i to i + 3; in each block four bytes of the first channel, four of the second, …
template <int kChannels, int kPairs>
HWY_INLINE void four(const uint8_t* const* rows, const Taps& taps, int i, V8& a, V8& b) {
  V32 a0, a1, a2, a3, b0, b1, b2, b3;
  one<kChannels, kPairs>(rows, taps, i, a0, b0);
  one<kChannels, kPairs>(rows, taps, i + 1, a1, b1);
  one<kChannels, kPairs>(rows, taps, i + 2, a2, b2);
  one<kChannels, kPairs>(rows, taps, i + 3, a3, b3);
  const V8 planar = hn::LoadDup128(d8, kPlanar);
  a = hn::TableLookupBytes(rounded(a0, a1, a2, a3), planar);
  b = hn::TableLookupBytes(rounded(b0, b1, b2, b3), planar);
}

// Eight bytes of each of two channels.
template <typename V>
HWY_INLINE void put_two(V two, uint8_t* first, uint8_t* second) {
  const hn::CappedTag<uint64_t, 1> one_lane;
  hn::StoreU(hn::LowerHalf(two), one_lane, reinterpret_cast<uint64_t*>(first));
  hn::StoreU(hn::UpperHalf(one_lane, two), one_lane, reinterpret_cast<uint64_t*>(second));
}

template <int kChannels, typename V>
HWY_INLINE void put_block(V c01, V c23, uint8_t* const* out, int i) {
  put_two(c01, out[0] + i, out[1] + i);
  if constexpr (kChannels == 3)
    hn::StoreU(hn::LowerHalf(c23), hn::CappedTag<uint64_t, 1>(),
               reinterpret_cast<uint64_t*>(out[2] + i));
  else
    put_two(c23, out[2] + i, out[3] + i);
}

// Eight outputs of the rows of one vector to where their channels lie.
template <int kChannels>
HWY_INLINE void put(V8 first, V8 second, uint8_t* const* out, int i) {
  const hn::Repartition<uint32_t, decltype(d8)> du32;
  const hn::Repartition<uint64_t, decltype(d8)> du64;
  const auto a = hn::BitCast(du32, first);
  const auto b = hn::BitCast(du32, second);
  const auto c01 = hn::BitCast(du64, hn::InterleaveLower(du32, a, b));
  const auto c23 = hn::BitCast(du64, hn::InterleaveUpper(du32, a, b));
#if HWY_TARGET == HWY_AVX2
  const hn::Half<decltype(du64)> block;
  put_block<kChannels>(hn::LowerHalf(c01), hn::LowerHalf(c23), out, i);
  put_block<kChannels>(hn::UpperHalf(block, c01), hn::UpperHalf(block, c23), out + 4, i);
#else
  put_block<kChannels>(c01, c23, out, i);
#endif
}

// `out` has four pointers for each block of the two vectors.
template <int kChannels, int kPairs>
void across_group(const uint8_t* const* in, uint8_t* const* out, const Taps& taps) {
  for (int i = 0; i < taps.count(); i += 8) {
    V8 a0, a1, b0, b1;
    four<kChannels, kPairs>(in, taps, i, a0, b0);
    four<kChannels, kPairs>(in, taps, i + 4, a1, b1);
    put<kChannels>(a0, a1, out, i);
    put<kChannels>(b0, b1, out + 4 * kBlocks, i);
  }
}

template <int kChannels>
void across_rows(const AcrossRow* rows, int count, size_t plane, const Taps& taps) {
  for (int r = 0; r < count; r += kGroup<kChannels>) {
    const uint8_t* in[kGroup<kChannels>];
    uint8_t* out[8 * kBlocks];
    for (int k = 0; k < kGroup<kChannels>; ++k) {
      const AcrossRow& row =
          rows[std::min(r + k, count - 1)];  // the last once more where rows are missing
      in[k] = row.in;
      if constexpr (kChannels == 1)
        out[k] = row.out;
      else
        for (size_t c = 0; c < 4; ++c) out[4 * k + static_cast<int>(c)] = row.out + c * plane;
    }
    switch (taps.pairs()) {
      case 1:
        across_group<kChannels, 1>(in, out, taps);
        break;
      case 2:
        across_group<kChannels, 2>(in, out, taps);
        break;
      default:
        across_group<kChannels, 0>(in, out, taps);
    }
  }
}

void across(const AcrossRow* rows, int count, int channels, size_t plane, const Taps& taps) {
  switch (channels) {
    case 1:
      return across_rows<1>(rows, count, plane, taps);
    case 3:
      return across_rows<3>(rows, count, plane, taps);
    case 4:
      return across_rows<4>(rows, count, plane, taps);
    default:
      return scalar_kernels().across(rows, count, channels, plane, taps);
  }
}

void fill(Kernels& kernels) {
  kernels.name = hwy::TargetName(HWY_TARGET);
  kernels.across = across;
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace {
HWY_EXPORT(fill);
void use_vector_across(Kernels& kernels) {
  HWY_DYNAMIC_DISPATCH(fill)(kernels);
}
}  // namespace headrace
#endif
