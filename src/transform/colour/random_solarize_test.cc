// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomSolarizeTest, ChangesPixels) {
  const Canvas before({5, 4}, 3);
  const Canvas after =
      run(*step<PixelStep>("random_solarize", {{"threshold", 128.0}, {"p", 1.0}}), before);
  for (size_t i = 0; i < before.bytes.size(); ++i)
    EXPECT_EQ(after.bytes[i], before.bytes[i] >= 128 ? 255 - before.bytes[i] : before.bytes[i]);
}

TEST(RandomSolarizeTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_solarize", {{"threshold", 128.0}})), 2000, 150);
  EXPECT_EQ(changes(*step<PixelStep>("random_solarize", {{"threshold", 128.0}, {"p", 0.0}})), 0);
}

TEST(RandomSolarizeTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_solarize", {{"threshold", 128.0}, {"p", 1.0}}));
}

TEST(RandomSolarizeTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_solarize", {{"threshold", 128.0}, {"p", 1.5}}),
            "parameter 'p' must be in [0, 1]");
  EXPECT_EQ(refusal("random_solarize", {}), "parameter 'threshold' is missing");
  EXPECT_EQ(refusal("random_solarize", {{"threshold", 256.0}}),
            "parameter 'threshold' must be a level from 0 to 255");
}

}  // namespace
}  // namespace headrace::fixture
