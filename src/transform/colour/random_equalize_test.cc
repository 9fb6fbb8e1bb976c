// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomEqualizeTest, ChangesPixels) {
  Canvas dark({64, 64}, 3);
  for (uint8_t& v : dark.bytes) v = static_cast<uint8_t>(v / 8);
  const Canvas flat = run(*step<PixelStep>("random_equalize", {{"p", 1.0}}), dark);
  double sum = 0;
  for (const uint8_t v : flat.bytes) sum += v;
  EXPECT_NEAR(sum / static_cast<double>(flat.bytes.size()), 127.5, 5);
}

TEST(RandomEqualizeTest, HappensWithItsProbability) {
  Canvas dark({32, 16}, 3);
  for (uint8_t& v : dark.bytes) v = static_cast<uint8_t>(v / 8);
  const auto equalize = step<PixelStep>("random_equalize");
  int n = 0;
  for (uint64_t i = 0; i < 4000; ++i) n += run(*equalize, dark, i).bytes != dark.bytes;
  EXPECT_NEAR(n, 2000, 150);
}

// With fewer than 255 pixels there is nothing to spread.
TEST(RandomEqualizeTest, SmallPicturesStayAsTheyAre) {
  EXPECT_EQ(changes(*step<PixelStep>("random_equalize", {{"p", 1.0}})), 0);
}

TEST(RandomEqualizeTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_equalize", {{"p", 1.0}}));
}

TEST(RandomEqualizeTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_equalize", {{"p", 1.5}}), "parameter 'p' must be in [0, 1]");
}

}  // namespace
}  // namespace headrace::fixture
