// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include <algorithm>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomAutocontrastTest, ChangesPixels) {
  const Canvas wide = run(*step<PixelStep>("random_autocontrast", {{"p", 1.0}}), Canvas({8, 8}, 3));
  for (int c = 0; c < 3; ++c) {
    int low = 255, high = 0;
    for (size_t i = static_cast<size_t>(c); i < wide.bytes.size(); i += 3) {
      low = std::min<int>(low, wide.bytes[i]);
      high = std::max<int>(high, wide.bytes[i]);
    }
    EXPECT_EQ(low, 0);
    EXPECT_GE(high, 254);  // rounded down, as torchvision does
  }
}

TEST(RandomAutocontrastTest, HappensWithItsProbability) {
  EXPECT_NEAR(changes(*step<PixelStep>("random_autocontrast")), 2000, 150);
  EXPECT_EQ(changes(*step<PixelStep>("random_autocontrast", {{"p", 0.0}})), 0);
}

TEST(RandomAutocontrastTest, LeavesAlphaAlone) {
  keeps_alpha(*step<PixelStep>("random_autocontrast", {{"p", 1.0}}));
}

TEST(RandomAutocontrastTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_autocontrast", {{"p", 1.5}}), "parameter 'p' must be in [0, 1]");
}

}  // namespace
}  // namespace headrace::fixture
