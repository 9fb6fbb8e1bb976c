// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include <algorithm>
#include <cmath>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(GaussianBlurTest, SpreadsAPointAsTheBellDoes) {
  Canvas point({21, 21}, 1);
  std::fill(point.bytes.begin(), point.bytes.end(), uint8_t{0});
  point.bytes[10 * 21 + 10] = 255;
  const Canvas after =
      run(*step<PixelStep>("gaussian_blur", {{"kernel_size", int64_t{9}}, {"sigma", 1.0}}), point);
  const double middle = after.at(10, 10);
  EXPECT_NEAR(middle, 255 / (2 * 3.14159265), 1);
  EXPECT_NEAR(after.at(11, 10) / middle, std::exp(-0.5), 0.02);
  EXPECT_NEAR(after.at(11, 12) / middle, std::exp(-2.5), 0.02);
  EXPECT_EQ(after.at(15, 10), 0);  // beyond the kernel
}

TEST(GaussianBlurTest, APlainPictureStaysAsItIs) {
  for (const Size size : {Size{1, 1}, Size{1, 9}, Size{9, 1}, Size{3, 2}, Size{40, 30}})
    for (const int channels : {1, 3, 4}) {
      Canvas plain(size, channels);
      std::fill(plain.bytes.begin(), plain.bytes.end(), uint8_t{255});
      const auto blur = step<PixelStep>("gaussian_blur", {{"kernel_size", Numbers{23, 9}}});
      EXPECT_EQ(run(*blur, plain).bytes, plain.bytes);
    }
}

TEST(GaussianBlurTest, HappensWithItsProbability) {
  const Given given{{"kernel_size", int64_t{5}}, {"sigma", Numbers{1, 2}}};
  EXPECT_EQ(changes(*step<PixelStep>("gaussian_blur", given)), 4000);
  Given sometimes = given;
  sometimes["p"] = 0.25;
  EXPECT_NEAR(changes(*step<PixelStep>("gaussian_blur", sometimes)), 1000, 150);
}

TEST(GaussianBlurTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("gaussian_blur", {{"kernel_size", int64_t{4}}}),
            "parameter 'kernel_size' must be odd and from 1 on, or two such numbers");
  EXPECT_EQ(refusal("gaussian_blur", {{"kernel_size", Numbers{3, 3, 3}}}),
            "parameter 'kernel_size' must be odd and from 1 on, or two such numbers");
  EXPECT_EQ(refusal("gaussian_blur", {{"kernel_size", int64_t{3}}, {"sigma", 0.0}}),
            "parameter 'sigma' must be (low, high) with 0.001 <= low <= high <= 10000");
}

}  // namespace
}  // namespace headrace::fixture
