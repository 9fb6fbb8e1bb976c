// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry random_flip_transform;
namespace {

int flips(Params params) {
  const auto t = random_flip_transform.make(std::move(params)).value();
  const auto& step = *std::get<std::unique_ptr<const Geometric>>(t);
  int n = 0;
  for (uint64_t i = 0; i < 20000; ++i) n += step.view({8, 8}, Rng(Key(i))).flip;
  return n;
}

TEST(RandomFlipTest, FlipsWithItsProbability) {
  EXPECT_NEAR(flips(Params()), 10000, 300);
  EXPECT_NEAR(flips(Params({{"p", 0.1}})), 2000, 200);
  EXPECT_EQ(flips(Params({{"p", 0.0}})), 0);
  EXPECT_EQ(flips(Params({{"p", int64_t{1}}})), 20000);
}

TEST(RandomFlipTest, RefusesTyposAndNonsense) {
  EXPECT_EQ(random_flip_transform.make(Params({{"prob", 1.0}})).status().message(),
            "unknown parameter 'prob'; it takes p");
  EXPECT_EQ(random_flip_transform.make(Params({{"p", 2.0}})).status().message(),
            "parameter 'p' must be in [0, 1]");
}

}  // namespace
}  // namespace headrace
