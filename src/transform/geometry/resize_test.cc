// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry resize_transform;
namespace {

std::unique_ptr<const Geometric> make(Param size) {
  auto t = resize_transform.make(Params({{"size", std::move(size)}})).value();
  return std::get<std::unique_ptr<const Geometric>>(std::move(t));
}

// Sizes by torchvision 0.29: int(256 * long / short), cut off, not rounded.
TEST(ResizeTest, OneNumberIsTheShorterSide) {
  const auto step = make(int64_t{256});
  EXPECT_EQ(step->infer({500, 375}), (Size{341, 256}));
  EXPECT_EQ(step->infer({375, 500}), (Size{256, 341}));
  EXPECT_EQ(step->infer({333, 500}), (Size{256, 384}));
  EXPECT_EQ(step->infer({7, 7}), (Size{256, 256}));
  EXPECT_EQ(step->infer({-1, -1}), (Size{-1, -1}));
  EXPECT_EQ(step->view({500, 375}, Rng(Key(0))).size, (Size{341, 256}));
}

TEST(ResizeTest, TwoNumbersAreHeightAndWidth) {
  const auto step = make(std::vector<double>{30, 40});
  EXPECT_EQ(step->infer({-1, -1}), (Size{40, 30}));
  EXPECT_EQ(step->view({500, 375}, Rng(Key(0))).size, (Size{40, 30}));
}

TEST(ResizeTest, RefusesTypos) {
  const auto r = resize_transform.make(Params({{"size", int64_t{8}}, {"antialias", true}}));
  EXPECT_EQ(r.status().message(), "unknown parameter 'antialias'; it takes size, filter");
}

}  // namespace
}  // namespace headrace
