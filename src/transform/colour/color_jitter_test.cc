// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(ColorJitterTest, NothingGivenChangesNothing) {
  EXPECT_EQ(changes(*step<PixelStep>("color_jitter")), 0);
  EXPECT_EQ(changes(*step<PixelStep>("color_jitter", {{"brightness", 0.0}, {"hue", 0.0}})), 0);
}

TEST(ColorJitterTest, EachChangesColoursAndLeavesAlphaAlone) {
  for (const char* what : {"brightness", "contrast", "saturation", "hue"}) {
    const auto jitter = step<PixelStep>("color_jitter", {{what, 0.4}});
    EXPECT_GT(changes(*jitter), 3800) << what;
    keeps_alpha(*jitter);
  }
}

TEST(ColorJitterTest, GrayHasNoSaturationAndNoHue) {
  const Canvas gray({7, 7}, 1);
  const auto jitter =
      step<PixelStep>("color_jitter", {{"saturation", Numbers{2, 2}}, {"hue", Numbers{0.3, 0.3}}});
  EXPECT_EQ(run(*jitter, gray).bytes, gray.bytes);
}

// A third of the way round, red becomes green, green blue, blue red.
TEST(ColorJitterTest, HuesGoRound) {
  const Canvas before({9, 9}, 3);
  const Canvas after =
      run(*step<PixelStep>("color_jitter", {{"hue", Numbers{1.0 / 3, 1.0 / 3}}}), before);
  for (int y = 0; y < 9; ++y)
    for (int x = 0; x < 9; ++x)
      for (int c = 0; c < 3; ++c)
        EXPECT_NEAR(after.at(x, y, (c + 1) % 3), before.at(x, y, c), 1) << x << " " << y;
}

TEST(ColorJitterTest, HappensWithItsProbability) {
  EXPECT_NEAR(
      changes(*step<PixelStep>("color_jitter", {{"brightness", Numbers{0.5, 0.5}}, {"p", 0.8}})),
      3200, 150);
}

// Changing these changes what a resumed run sees.
TEST(ColorJitterTest, DrawsAreFrozen) {
  const auto jitter = step<PixelStep>(
      "color_jitter", {{"brightness", 0.4}, {"contrast", 0.4}, {"saturation", 0.4}, {"hue", 0.1}});
  const Canvas after = run(*jitter, Canvas({2, 1}, 3), 42);
  EXPECT_EQ(after.bytes, (std::vector<uint8_t>{101, 221, 91, 188, 107, 164}));
}

TEST(ColorJitterTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("color_jitter", {{"brightness", -1.0}}),
            "parameter 'brightness' must be at least 0, or (low, high)");
  EXPECT_EQ(refusal("color_jitter", {{"contrast", Numbers{2, 1}}}),
            "parameter 'contrast' must be (low, high) with 0 <= low <= high");
  EXPECT_EQ(refusal("color_jitter", {{"hue", 0.6}}),
            "parameter 'hue' must be (low, high) with -0.5 <= low <= high <= 0.5");
  EXPECT_EQ(refusal("color_jitter", {{"bright", 0.6}}),
            "unknown parameter 'bright'; it takes brightness, contrast, saturation, hue, p");
}

}  // namespace
}  // namespace headrace::fixture
