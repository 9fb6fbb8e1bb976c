// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomAdjustSharpnessTest, ChangesPixels) {
  const Canvas before({5, 4}, 3);
  const Canvas after = run(
      *step<PixelStep>("random_adjust_sharpness", {{"sharpness_factor", 0.0}, {"p", 1.0}}), before);
  EXPECT_EQ(after.at(0, 2), before.at(0, 2));  // the edge stays
  int sum = 4 * before.at(2, 2);
  for (int y = 1; y <= 3; ++y)
    for (int x = 1; x <= 3; ++x) sum += before.at(x, y);
  EXPECT_NEAR(after.at(2, 2), sum / 13.0, 0.5);
}

TEST(RandomAdjustSharpnessTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_adjust_sharpness", {{"sharpness_factor", 2.0}})),
              2000, 150);
  EXPECT_EQ(
      changes(*step<PixelStep>("random_adjust_sharpness", {{"sharpness_factor", 2.0}, {"p", 0.0}})),
      0);
}

TEST(RandomAdjustSharpnessTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_adjust_sharpness", {{"sharpness_factor", 2.0}, {"p", 1.0}}));
}

TEST(RandomAdjustSharpnessTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_adjust_sharpness", {{"sharpness_factor", 2.0}, {"p", 1.5}}),
            "parameter 'p' must be in [0, 1]");
  EXPECT_EQ(refusal("random_adjust_sharpness", {{"sharpness_factor", -1.0}}),
            "parameter 'sharpness_factor' must be a number from 0 on");
}

}  // namespace
}  // namespace headrace::fixture
