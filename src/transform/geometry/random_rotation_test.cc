// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include <cmath>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

double angle(const Affine& m) {
  return std::atan2(-m.yx, m.xx) * 180 / 3.14159265358979;
}

TEST(RandomRotationTest, AnglesAreUniform) {
  const auto turn = step<PixelStep>("random_rotation", {{"degrees", Numbers{-30, 60}}});
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const double a = angle(turn->matrix({30, 20}, Rng(Key(i))).value());
    ASSERT_TRUE(a >= -30.001 && a <= 60.001);
    sum += a, squares += a * a;
  }
  EXPECT_NEAR(sum / 20000, 15, 0.6);
  EXPECT_NEAR(squares / 20000 - 15 * 15, 90 * 90 / 12.0, 15);
}

// The matrix says where pixels go: a quarter turn, counter-clockwise.
TEST(RandomRotationTest, TheMatrixFollowsThePixels) {
  const auto turn = step<PixelStep>("random_rotation", {{"degrees", Numbers{90, 90}}});
  const Canvas before({8, 8}, 3);
  const Canvas after = run(*turn, before);
  const Affine m = turn->matrix({8, 8}, Rng(Key(1))).value();
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) {
      const double to_x = m.xx * (x + 0.5) + m.xy * (y + 0.5) + m.x0;
      const double to_y = m.yx * (x + 0.5) + m.yy * (y + 0.5) + m.y0;
      EXPECT_NEAR(to_x, y + 0.5, 1e-9);
      EXPECT_NEAR(to_y, 7.5 - x, 1e-9);
      EXPECT_EQ(after.at(y, 7 - x), before.at(x, y));
    }
}

TEST(RandomRotationTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_rotation", {}), "parameter 'degrees' is missing");
  EXPECT_EQ(refusal("random_rotation", {{"degrees", -3.0}}),
            "parameter 'degrees' must be at least 0, or (low, high); one number v is (-v, v)");
  EXPECT_EQ(refusal("random_rotation", {{"degrees", Numbers{3, 1}}}),
            "parameter 'degrees' must be (low, high) with low <= high");
  EXPECT_EQ(
      refusal("random_rotation", {{"degrees", 3.0}, {"interpolation", std::string("bicubic")}}),
      "no interpolation 'bicubic'; there are nearest, bilinear");
  EXPECT_EQ(refusal("random_rotation", {{"degrees", 3.0}, {"center", 1.0}}),
            "parameter 'center' must be (x, y) in pixels");
}

}  // namespace
}  // namespace headrace::fixture
