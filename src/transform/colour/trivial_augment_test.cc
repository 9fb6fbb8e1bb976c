// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(TrivialAugmentTest, ChangesMostPictures) {
  const int n = changes(*step<PixelStep>("trivial_augment"));
  EXPECT_TRUE(n > 3200 && n < 3900) << n;
}

TEST(TrivialAugmentTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("trivial_augment", {{"num_magnitude_bins", int64_t{0}}}),
            "parameter 'num_magnitude_bins' must be from 2 to 1000");
  EXPECT_EQ(refusal("trivial_augment", {{"interpolation", std::string("cubic")}}),
            "no interpolation 'cubic'; there are nearest, bilinear");
}

}  // namespace
}  // namespace headrace::fixture
