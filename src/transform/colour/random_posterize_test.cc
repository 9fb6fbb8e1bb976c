// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomPosterizeTest, ChangesPixels) {
  const Canvas after = run(*step<PixelStep>("random_posterize", {{"bits", int64_t{3}}, {"p", 1.0}}),
                           Canvas({5, 4}, 3));
  for (const uint8_t v : after.bytes) EXPECT_EQ(v % 32, 0);
}

TEST(RandomPosterizeTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_posterize", {{"bits", int64_t{3}}})), 2000, 150);
  EXPECT_EQ(changes(*step<PixelStep>("random_posterize", {{"bits", int64_t{3}}, {"p", 0.0}})), 0);
}

TEST(RandomPosterizeTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_posterize", {{"bits", int64_t{3}}, {"p", 1.0}}));
}

TEST(RandomPosterizeTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_posterize", {{"bits", int64_t{3}}, {"p", 1.5}}),
            "parameter 'p' must be in [0, 1]");
  EXPECT_EQ(refusal("random_posterize", {}), "parameter 'bits' is missing");
  EXPECT_EQ(refusal("random_posterize", {{"bits", int64_t{9}}}),
            "parameter 'bits' must be from 0 to 8");
}

}  // namespace
}  // namespace headrace::fixture
