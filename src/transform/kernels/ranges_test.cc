// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/ranges.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace {
namespace {

TEST(RangesTest, ARangeIsTwoNumbersInOrderWithinItsLimits) {
  EXPECT_EQ(range_from({1, 2}, "x").value(), (Range{1, 2}));
  EXPECT_EQ(range_from({1, 2}, "x", {.least = 0, .most = 1}).status().message(),
            "parameter 'x' must be (low, high) with 0 <= low <= high <= 1");
  for (const std::vector<double>& bad :
       {std::vector<double>{}, {1}, {2, 1}, {1, 2, 3}, {0, INFINITY}, {NAN, 1}})
    EXPECT_EQ(range_from(bad, "x").status().message(),
              "parameter 'x' must be (low, high) with low <= high");
}

TEST(RangesTest, OneAngleIsToEitherSide) {
  EXPECT_EQ(angles_from({30}, "x").value(), (Range{-30, 30}));
  EXPECT_EQ(angles_from({10, 20}, "x").value(), (Range{10, 20}));
  EXPECT_FALSE(angles_from({NAN}, "x").ok());
}

TEST(RangesTest, OneLevelServesAllChannels) {
  const Colour gray = colour_from({7}, "fill").value();
  EXPECT_EQ(gray.bytes(), (std::array<uint8_t, 4>{7, 7, 7, 7}));
  for (const int channels : {1, 3, 4}) EXPECT_TRUE(gray.check_channels(channels, "fill").ok());
  const Colour red = colour_from({255, 0, 0}, "fill").value();
  EXPECT_TRUE(red.check_channels(3, "fill").ok());
  EXPECT_FALSE(red.check_channels(4, "fill").ok());
  EXPECT_FALSE(colour_from({}, "fill").ok());
  EXPECT_FALSE(colour_from({1, 2, 3, 4, 5}, "fill").ok());
  EXPECT_FALSE(colour_from({NAN}, "fill").ok());
}

}  // namespace
}  // namespace headrace
