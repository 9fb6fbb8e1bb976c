// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include <algorithm>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomErasingTest, CoversAPart) {
  Canvas white({20, 10}, 3);
  std::fill(white.bytes.begin(), white.bytes.end(), uint8_t{255});
  const auto erase = step<PixelStep>("random_erasing", {{"p", 1.0}, {"value", Numbers{1, 2, 3}}});
  const Canvas after = run(*erase, white);
  int covered = 0;
  for (int y = 0; y < 10; ++y)
    for (int x = 0; x < 20; ++x) {
      const bool here = after.at(x, y, 0) == 1;
      EXPECT_EQ(after.at(x, y, 1), here ? 2 : 255);
      EXPECT_EQ(after.at(x, y, 2), here ? 3 : 255);
      covered += here;
    }
  EXPECT_TRUE(covered >= 2 && covered <= 80) << covered;
}

TEST(RandomErasingTest, NothingThatFitsIsNothingErased) {
  const auto all = step<PixelStep>(
      "random_erasing", {{"p", 1.0}, {"scale", Numbers{1, 1}}, {"ratio", Numbers{1, 1}}});
  EXPECT_EQ(changes(*all), 0);
  const auto none = step<PixelStep>("random_erasing", {{"p", 1.0}, {"scale", Numbers{0, 0}}});
  EXPECT_EQ(changes(*none), 0);
}

TEST(RandomErasingTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_erasing", {{"scale", Numbers{0.3, 0.33}}})), 2000,
              200);
}

TEST(RandomErasingTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_erasing", {{"scale", Numbers{0.5, 2}}}),
            "parameter 'scale' must be (low, high) with 0 <= low <= high <= 1");
  EXPECT_EQ(refusal("random_erasing", {{"value", std::string("noise")}}),
            "parameter 'value' must be numbers or 'random'");
  EXPECT_EQ(refusal("random_erasing", {{"value", 300.0}}),
            "parameter 'value' must be a level from 0 to 255, or one for each channel");
  const auto two = step<PixelStep>("random_erasing", {{"value", Numbers{1, 2}}});
  EXPECT_EQ(two->check_channels(3).message(), "parameter 'value' has 2 numbers for 3 channels");
}

}  // namespace
}  // namespace headrace::fixture
