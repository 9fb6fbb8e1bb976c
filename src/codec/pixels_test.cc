// SPDX-License-Identifier: Apache-2.0
#include "codec/pixels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace headrace {
namespace {

TEST(PixelsTest, GrayOfGrayIsItself) {
  for (int v = 0; v < 256; ++v) {
    const auto b = static_cast<uint8_t>(v);
    const std::array<uint8_t, 3> rgb{b, b, b};
    uint8_t gray = 0;
    rgb_to_gray(rgb.data(), &gray, 1);
    EXPECT_EQ(gray, v);
  }
}

TEST(PixelsTest, AlphaIsAddedInPlace) {
  std::vector<uint8_t> row{1, 2, 3, 4, 5, 6, 0, 0};
  rgb_to_rgba(row.data(), row.data(), 2);
  EXPECT_EQ(row, (std::vector<uint8_t>{1, 2, 3, 255, 4, 5, 6, 255}));
}

// v * alpha / 255 to the nearest, for all of them.
TEST(PixelsTest, PremultipliedColoursAreRounded) {
  for (int alpha = 0; alpha < 256; ++alpha)
    for (int v = 0; v < 256; ++v) {
      const auto b = static_cast<uint8_t>(v);
      const std::array<uint8_t, 4> pixel{b, b, b, static_cast<uint8_t>(alpha)};
      std::array<uint8_t, 4> out{};
      premultiply(pixel.data(), out.data(), 1);
      ASSERT_EQ(out[1], (2 * v * alpha + 255) / 510);
      ASSERT_EQ(out[3], alpha);
    }
}

// Back down is cut, not rounded, and never above 255; nothing is divided by 0.
TEST(PixelsTest, UnpremultipliedPlanesAreWhatPillowMakes) {
  constexpr size_t kPlane = 10;
  std::vector<uint8_t> rows(4 * kPlane, 77);
  const std::array<std::array<uint8_t, 4>, 4> in{
      {{9, 8, 7, 0}, {9, 8, 7, 255}, {100, 50, 1, 128}, {200, 50, 1, 100}}};
  const std::array<std::array<uint8_t, 4>, 4> want{
      {{9, 8, 7, 0}, {9, 8, 7, 255}, {199, 99, 1, 128}, {255, 127, 2, 100}}};
  for (size_t i = 0; i < 4; ++i)
    for (size_t c = 0; c < 4; ++c) rows[c * kPlane + i] = in[i][c];
  unpremultiply_planes(rows.data(), kPlane, 4);
  for (size_t i = 0; i < 4; ++i)
    for (size_t c = 0; c < 4; ++c) EXPECT_EQ(rows[c * kPlane + i], want[i][c]) << i << ' ' << c;
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 77), 24);
}

}  // namespace
}  // namespace headrace
