// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandAugmentTest, KeepsAlphaAndIsTheSameForTheSameDraws) {
  const auto augment = step<PixelStep>("rand_augment", {{"num_ops", int64_t{6}}});
  for (uint64_t i = 0; i < 50; ++i) {
    const Canvas picture({12, 9}, i % 2 == 0 ? 1 : 3, i);
    EXPECT_EQ(run(*augment, picture, i).bytes, run(*augment, picture, i).bytes);
  }
  EXPECT_EQ(changes(*step<PixelStep>("rand_augment", {{"num_ops", int64_t{0}}})), 0);
}

// Five of fourteen changes move pixels: those have a matrix.
TEST(RandAugmentTest, TheMatrixIsThatOfTheMotionsDrawn) {
  const auto augment = step<PixelStep>("rand_augment", {{"num_ops", int64_t{1}}});
  int moved = 0;
  for (uint64_t i = 0; i < 4000; ++i)
    moved += augment->matrix({12, 9}, Rng(Key(i))).has_value() ? 1 : 0;
  EXPECT_NEAR(moved, 4000 * 5 / 14, 150);
}

TEST(RandAugmentTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("rand_augment", {{"num_ops", int64_t{-1}}}),
            "parameter 'num_ops' must be from 0 to 64");
  EXPECT_EQ(refusal("rand_augment", {{"magnitude", int64_t{31}}}),
            "parameter 'magnitude' must be from 0 to num_magnitude_bins - 1, which is 30");
  EXPECT_EQ(refusal("rand_augment", {{"num_magnitude_bins", int64_t{1}}}),
            "parameter 'num_magnitude_bins' must be from 2 to 1000");
  EXPECT_EQ(refusal("rand_augment", {{"magnitude", 1.5}}),
            "parameter 'magnitude' must be a whole number or a list of them");
}

}  // namespace
}  // namespace headrace::fixture
