// SPDX-License-Identifier: Apache-2.0
//
// The distribution against torchvision's own draws is tested in tests/test_pixels.py.
#include <gtest/gtest.h>

#include <cmath>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry random_resized_crop_transform;
namespace {

using Numbers = std::vector<double>;

std::unique_ptr<const Geometric> make(std::map<std::string, Param> params) {
  auto t = random_resized_crop_transform.make(Params(std::move(params))).value();
  return std::get<std::unique_ptr<const Geometric>>(std::move(t));
}

std::string error(std::map<std::string, Param> params) {
  return std::string(
      random_resized_crop_transform.make(Params(std::move(params))).status().message());
}

TEST(RandomResizedCropTest, GivesItsSizeAndABoxWithin) {
  const auto step = make({{"size", Numbers{10, 20}}});
  EXPECT_EQ(step->infer({-1, -1}), (Size{20, 10}));
  for (uint64_t i = 0; i < 10000; ++i) {
    const View v = step->view({37, 53}, Rng(Key(i)));
    ASSERT_TRUE(contains(37, 53, v.box));
    EXPECT_EQ(v.result(), (Size{20, 10}));
  }
}

// Of a square hardly any try fails, so the draws are as asked: area uniform in scale, the
// logarithm of the shape uniform, offsets uniform over what is left.
TEST(RandomResizedCropTest, DrawsAreUniformInAreaLogShapeAndPlace) {
  const auto step = make({{"size", int64_t{8}}, {"scale", Numbers{0.1, 0.5}}});
  constexpr int kDraws = 40000;
  const double edge = std::log(4.0 / 3.0);
  double area = 0, area2 = 0, shape = 0, shape2 = 0, place = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const Box b = step->view({2000, 2000}, Rng(Key(9).with(i))).box;
    const double a = static_cast<double>(b.width) * b.height / 4e6;
    const double s = std::log(static_cast<double>(b.width) / b.height);
    ASSERT_LT(std::abs(s), edge + 0.01);
    area += a, area2 += a * a, shape += s, shape2 += s * s;
    place += static_cast<double>(b.x) / (2000 - b.width);
  }
  EXPECT_NEAR(area / kDraws, 0.3, 0.003);
  EXPECT_NEAR(area2 / kDraws - 0.09, 0.4 * 0.4 / 12, 0.0012);
  EXPECT_NEAR(shape / kDraws, 0, 0.004);
  EXPECT_NEAR(shape2 / kDraws, edge * edge / 3, 0.001);
  EXPECT_NEAR(place / kDraws, 0.5, 0.006);
}

TEST(RandomResizedCropTest, TakesTheMiddleWhenNothingFits) {
  const auto step = make({{"size", int64_t{8}}, {"scale", Numbers{1, 1}}});
  EXPECT_EQ(step->view({1000, 10}, Rng(Key(1))).box, (Box{493, 0, 13, 10}));
  EXPECT_EQ(step->view({10, 1000}, Rng(Key(1))).box, (Box{0, 493, 10, 13}));
  EXPECT_EQ(step->view({1, 1}, Rng(Key(1))).box, (Box{0, 0, 1, 1}));
}

// Changing these changes what a resumed run sees.
TEST(RandomResizedCropTest, DrawsAreFrozen) {
  const auto step = make({{"size", int64_t{224}}});
  EXPECT_EQ(step->view({500, 375}, Rng(Key(42))).box, (Box{12, 66, 311, 239}));
  EXPECT_EQ(step->view({500, 375}, Rng(Key(43))).box, (Box{160, 58, 223, 263}));
}

TEST(RandomResizedCropTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(error({}), "parameter 'size' is missing");
  EXPECT_EQ(error({{"size", int64_t{0}}}), "parameter 'size' must be from 1 to 65536");
  EXPECT_EQ(error({{"size", Numbers{1, 2, 3}}}),
            "parameter 'size' must be one number or (height, width)");
  EXPECT_EQ(error({{"size", int64_t{8}}, {"scale", Numbers{0.5, 0.1}}}),
            "parameter 'scale' must be (low, high) with 0 < low <= high <= 1");
  EXPECT_EQ(error({{"size", int64_t{8}}, {"ratio", 1.0}}),
            "parameter 'ratio' must be (low, high) with 0 < low <= high");
  EXPECT_EQ(error({{"size", int64_t{8}}, {"filter", std::string("box")}}),
            "no filter 'box'; there are nearest, bilinear, bicubic, lanczos");
  EXPECT_EQ(error({{"size", int64_t{8}}, {"scales", 1.0}}),
            "unknown parameter 'scales'; it takes size, scale, ratio, filter");
}

}  // namespace
}  // namespace headrace
