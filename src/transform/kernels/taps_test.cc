// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/taps.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace {
namespace {

Axis axis(int source, int size, Filter filter) {
  Axis a;
  a.end = source;
  a.size = size;
  a.count = size;
  a.high = source;
  a.filter = filter;
  return a;
}

int weight(const Taps& taps, int i, int k) {
  const TapPair& p = taps.weights(i)[k / 2];
  return p.high[k % 2] * (1 << kSplitBits) + p.low[k % 2];
}

TEST(TapsTest, WeightsAddUpToOne) {
  for (const Filter f : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos})
    for (int source = 1; source < 40; ++source)
      for (int size = 1; size < 40; ++size) {
        Taps taps;
        taps.build(axis(source, size, f));
        for (int i = 0; i < size; ++i) {
          int sum = 0;
          for (int k = 0; k < 2 * taps.pairs(); ++k) sum += weight(taps, i, k);
          ASSERT_NEAR(sum, 1 << kWeightBits, taps.used(i))
              << source << " to " << size << " at " << i;
          ASSERT_GE(taps.start(i), 0);
          ASSERT_LE(taps.low() + taps.start(i) + taps.used(i), source);
        }
      }
}

TEST(TapsTest, HalvingAveragesWithATriangle) {
  Taps taps;
  taps.build(axis(8, 4, Filter::kBilinear));
  ASSERT_EQ(taps.used(1), 4);
  EXPECT_EQ(taps.start(1), 1);
  const int one = 1 << kWeightBits;
  EXPECT_EQ(weight(taps, 1, 0), one / 8);
  EXPECT_EQ(weight(taps, 1, 1), one * 3 / 8);
}

TEST(TapsTest, EqualSizesAreACopy) {
  Taps taps;
  taps.build(axis(7, 7, Filter::kBicubic));
  EXPECT_TRUE(taps.is_copy());
  taps.build(axis(7, 6, Filter::kBicubic));
  EXPECT_FALSE(taps.is_copy());
}

TEST(TapsTest, ReverseCountsFromTheFarEnd) {
  Taps straight, reverse;
  Axis a = axis(31, 13, Filter::kBicubic);
  a.first = 3;
  a.count = 7;
  straight.build(a);
  a.reverse = true;
  reverse.build(a);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(reverse.start(i), straight.start(6 - i));
    for (int k = 0; k < straight.used(6 - i); ++k)
      EXPECT_EQ(weight(reverse, i, k), weight(straight, 6 - i, k));
  }
}

TEST(TapsTest, LargeReductionsHaveRoomForAllTaps) {
  Taps taps;
  taps.build(axis(20000, 1, Filter::kBicubic));
  EXPECT_EQ(taps.used(0), 20000);
}

}  // namespace
}  // namespace headrace
