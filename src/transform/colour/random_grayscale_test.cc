// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomGrayscaleTest, ChangesPixels) {
  const Canvas gray = run(*step<PixelStep>("random_grayscale", {{"p", 1.0}}), Canvas({5, 4}, 3));
  for (size_t i = 0; i < gray.bytes.size(); i += 3) {
    EXPECT_EQ(gray.bytes[i], gray.bytes[i + 1]);
    EXPECT_EQ(gray.bytes[i], gray.bytes[i + 2]);
  }
}

TEST(RandomGrayscaleTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_grayscale")), 400, 150);
  EXPECT_EQ(changes(*step<PixelStep>("random_grayscale", {{"p", 0.0}})), 0);
}

TEST(RandomGrayscaleTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_grayscale", {{"p", 1.0}}));
}

TEST(RandomGrayscaleTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_grayscale", {{"p", 1.5}}), "parameter 'p' must be in [0, 1]");
}

}  // namespace
}  // namespace headrace::fixture
