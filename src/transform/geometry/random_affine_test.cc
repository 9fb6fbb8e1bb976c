// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include <algorithm>
#include <cmath>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomAffineTest, MovesAreWholePixelsOfAtMostTheShareGiven) {
  const auto move =
      step<PixelStep>("random_affine", {{"degrees", 0.0}, {"translate", Numbers{0.1, 0.5}}});
  double most_x = 0, most_y = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Affine m = move->matrix({40, 20}, Rng(Key(i))).value();
    EXPECT_NEAR(m.x0, std::round(m.x0), 1e-9);
    most_x = std::max(most_x, std::abs(m.x0));
    most_y = std::max(most_y, std::abs(m.y0));
  }
  EXPECT_NEAR(most_x, 4, 1e-9);
  EXPECT_NEAR(most_y, 10, 1e-9);
}

TEST(RandomAffineTest, AMoveMovesPixelsAndFillsWhatIsFree) {
  const auto move = step<PixelStep>(
      "random_affine", {{"degrees", 0.0}, {"translate", Numbers{0.3, 0.3}}, {"fill", 7.0}});
  for (uint64_t i = 0; i < 50; ++i)
    for (const int channels : {1, 3, 4}) {
      const Canvas before({10, 9}, channels);
      const Canvas after = run(*move, before, i);
      const Affine m = move->matrix({10, 9}, Rng(Key(i))).value();
      for (int y = 0; y < 9; ++y)
        for (int x = 0; x < 10; ++x) {
          const int from_x = x - static_cast<int>(std::lround(m.x0));
          const int from_y = y - static_cast<int>(std::lround(m.y0));
          const bool inside = from_x >= 0 && from_x < 10 && from_y >= 0 && from_y < 9;
          ASSERT_EQ(after.at(x, y), inside ? before.at(from_x, from_y) : 7);
        }
    }
}

TEST(RandomAffineTest, ScaleAndShearAreInTheMatrix) {
  const auto big = step<PixelStep>("random_affine", {{"degrees", 0.0},
                                                     {"scale", Numbers{2, 2}},
                                                     {"shear", Numbers{45, 45}},
                                                     {"center", Numbers{0, 0}}});
  const Affine m = big->matrix({40, 20}, Rng(Key(3))).value();
  EXPECT_NEAR(m.xx, 2, 1e-9);
  EXPECT_NEAR(m.xy, -2, 1e-9);
  EXPECT_NEAR(m.yy, 2, 1e-9);
  for (const double zero : {m.x0, m.yx, m.y0}) EXPECT_NEAR(zero, 0, 1e-9);
}

TEST(RandomAffineTest, SmallPicturesAndLargeMotionsAreFine) {
  const auto wild = step<PixelStep>("random_affine", {{"degrees", 180.0},
                                                      {"scale", Numbers{0.001, 1000}},
                                                      {"shear", 89.9},
                                                      {"translate", Numbers{1, 1}},
                                                      {"interpolation", std::string("bilinear")}});
  for (uint64_t i = 0; i < 500; ++i)
    for (const Size size : {Size{1, 1}, Size{1, 50}, Size{33, 2}}) run(*wild, Canvas(size, 3), i);
}

TEST(RandomAffineTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_affine", {{"degrees", 0.0}, {"translate", 0.5}}),
            "parameter 'translate' must be two numbers in [0, 1]: of the width, the height");
  EXPECT_EQ(refusal("random_affine", {{"degrees", 0.0}, {"scale", Numbers{0, 1}}}),
            "parameter 'scale' must be (low, high) with 0.001 <= low <= high <= 1000");
  EXPECT_EQ(refusal("random_affine", {{"degrees", 0.0}, {"shear", 90.0}}),
            "parameter 'shear' must be between -90 and 90 degrees");
  EXPECT_EQ(refusal("random_affine", {{"degrees", 0.0}, {"shear", Numbers{1, 2, 3}}}),
            "parameter 'shear' must be (low, high) with low <= high");
}

}  // namespace
}  // namespace headrace::fixture
