// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(AutoAugmentTest, PoliciesDiffer) {
  const Canvas picture({12, 9}, 3);
  const auto images = step<PixelStep>("auto_augment");
  const auto numbers = step<PixelStep>("auto_augment", {{"policy", std::string("svhn")}});
  int differ = 0;
  for (uint64_t i = 0; i < 100; ++i)
    differ += run(*images, picture, i).bytes != run(*numbers, picture, i).bytes;
  EXPECT_GT(differ, 60);
}

TEST(AutoAugmentTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("auto_augment", {{"policy", std::string("coco")}}),
            "no policy 'coco'; there are imagenet, cifar10, svhn");
  EXPECT_EQ(refusal("auto_augment", {{"fill", -1.0}}),
            "parameter 'fill' must be a level from 0 to 255, or one for each channel");
}

}  // namespace
}  // namespace headrace::fixture
