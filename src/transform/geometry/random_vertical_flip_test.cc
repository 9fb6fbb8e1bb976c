// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomVerticalFlipTest, FlipsWithItsProbability) {
  const auto flips = [](Given given) {
    const auto s = step<Geometric>("random_vertical_flip", std::move(given));
    int n = 0;
    for (uint64_t i = 0; i < 20000; ++i) n += s->view({8, 8}, Rng(Key(i))).flip_down;
    return n;
  };
  EXPECT_NEAR(flips({}), 10000, 300);
  EXPECT_EQ(flips({{"p", 0.0}}), 0);
  EXPECT_EQ(flips({{"p", 1.0}}), 20000);
}

TEST(RandomVerticalFlipTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_vertical_flip", {{"p", -1.0}}), "parameter 'p' must be in [0, 1]");
}

}  // namespace
}  // namespace headrace::fixture
