// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomInvertTest, ChangesPixels) {
  const Canvas before({5, 4}, 3);
  const Canvas after = run(*step<PixelStep>("random_invert", {{"p", 1.0}}), before);
  for (size_t i = 0; i < before.bytes.size(); ++i) EXPECT_EQ(after.bytes[i], 255 - before.bytes[i]);
}

TEST(RandomInvertTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_invert")), 2000, 150);
  EXPECT_EQ(changes(*step<PixelStep>("random_invert", {{"p", 0.0}})), 0);
}

TEST(RandomInvertTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_invert", {{"p", 1.0}}));
}

TEST(RandomInvertTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_invert", {{"p", 1.5}}), "parameter 'p' must be in [0, 1]");
}

}  // namespace
}  // namespace headrace::fixture
