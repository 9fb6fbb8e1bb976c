// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry/motion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(MotionTest, OneAfterTheOther) {
  const Motion turn{.angle = 30, .center_x = 5};
  const Motion move{.move_x = 3, .move_y = -2};
  const Affine both = matrix_of(turn, {40, 30}).then(matrix_of(move, {40, 30}));
  const Affine alone = matrix_of(turn, {40, 30});
  EXPECT_NEAR(both.xx, alone.xx, 1e-12);
  EXPECT_NEAR(both.yx, alone.yx, 1e-12);
  EXPECT_NEAR(both.x0, alone.x0 + 3, 1e-12);
  EXPECT_NEAR(both.y0, alone.y0 - 2, 1e-12);
}

TEST(MotionTest, TheCenterStays) {
  const Motion m{
      .angle = 77, .scale = 1.7, .shear_x = 12, .shear_y = -9, .center_x = 4, .center_y = -6};
  const Affine a = matrix_of(m, {40, 30});
  EXPECT_NEAR(a.xx * 24 + a.xy * 9 + a.x0, 24, 1e-9);
  EXPECT_NEAR(a.yx * 24 + a.yy * 9 + a.y0, 9, 1e-9);
}

// A bright spot is found where the matrix sends it.
TEST(MotionTest, PixelsGoWhereTheMatrixSaysTheyGo) {
  const Size size{60, 50};
  for (const Filter filter : {Filter::kNearest, Filter::kBilinear})
    for (const Motion& m : {Motion{.angle = 25}, Motion{.move_x = 7, .move_y = -4},
                            Motion{.scale = 1.4}, Motion{.shear_x = 20},
                            Motion{.angle = -40, .scale = 0.8, .shear_y = 10, .center_x = 9}}) {
      Canvas spot(size, 1);
      std::fill(spot.bytes.begin(), spot.bytes.end(), uint8_t{0});
      for (int y = 20; y < 26; ++y)
        for (int x = 24; x < 30; ++x) spot.bytes[static_cast<size_t>(y * 60 + x)] = 255;
      move_pixels(spot.pixels(), m, {filter, std::nullopt});
      double sum = 0, at_x = 0, at_y = 0;
      for (int y = 0; y < 50; ++y)
        for (int x = 0; x < 60; ++x) {
          const double v = spot.at(x, y);
          sum += v, at_x += v * (x + 0.5), at_y += v * (y + 0.5);
        }
      const Affine a = matrix_of(m, size);
      ASSERT_GT(sum, 0);
      EXPECT_NEAR(at_x / sum, a.xx * 27 + a.xy * 23 + a.x0, 0.3);
      EXPECT_NEAR(at_y / sum, a.yx * 27 + a.yy * 23 + a.y0, 0.3);
    }
}

}  // namespace
}  // namespace headrace::fixture
