// SPDX-License-Identifier: Apache-2.0
//
// 10^10 samples in 10^6 blocks, within the bounds promised for a hundred times as
// many (bench/micro/plan_scale).  In processor time, as others share the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "plan/plan.h"
#include "plan/test_support.h"

namespace headrace {
namespace {

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr double kSlower = 10;  // what the sanitizer may cost
#else
constexpr double kSlower = 1;
#endif

double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kSlower;
}

class ScaleTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Rng rng{Key(1)};
    std::vector<uint32_t> sizes(1000000);
    for (uint32_t& size : sizes) size = static_cast<uint32_t>(rng.below(20000));
    tree = make_tree(sizes);
  }
  static void TearDownTestSuite() { tree.reset(); }

  static std::unique_ptr<Plan> plan_of(uint32_t world) {
    PlanOptions options{.seed = 1};
    options.cut = {.batch = uint64_t{world} * 256, .rank = world / 2, .world = world};
    return Plan::make({{"", "f", tree, tree->blocks() * (4 << 20)}}, options).value();
  }

  inline static std::shared_ptr<const BlockTree> tree;
};

TEST_F(ScaleTest, AnEpochStartsWithinAMillisecond) {
  const auto plan = plan_of(8);
  const PlanState state = plan->state({});
  double best = std::numeric_limits<double>::max();
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::clock_t start = std::clock();
    Order order(*tree, {.seed = 1, .epoch = epoch}, {state.mode, state.lanes, state.pools[0]});
    EXPECT_LT(order.at(0), tree->samples());
    best = std::min(best, seconds_since(start));
  }
  EXPECT_LT(best, 1e-3);
}

TEST_F(ScaleTest, ARankLooksUpWithinAMicrosecondAndFiftyMegabytes) {
  for (const uint32_t world : {8u, 64u}) {
    const auto plan = plan_of(world);
    std::vector<PlanSlot> slots;
    uint64_t g = plan->epoch_length() / 2;
    double best = std::numeric_limits<double>::max();
    for (int tries = 0; tries < 5; ++tries) {
      const std::clock_t start = std::clock();
      uint64_t looked = 0;
      for (; looked < 300000; looked += slots.size()) g = plan->step(1, g, slots).value();
      best = std::min(best, seconds_since(start) / static_cast<double>(looked));
    }
    EXPECT_LT(best, 1e-6) << "R = " << world;
    EXPECT_LT(plan->cache_bytes(), size_t{50} << 20) << "R = " << world;
  }
}

// Both epochs at a turn: pools of two, nodes of one.
TEST_F(ScaleTest, TheTurnOfAnEpochKeepsWithinFiftyMegabytes) {
  const auto plan = plan_of(8);
  std::vector<PlanSlot> slots;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (uint64_t g = 0; g < 200000;) g = plan->step(epoch, g, slots).value();
    EXPECT_LT(plan->cache_bytes(), size_t{50} << 20);
  }
}

}  // namespace
}  // namespace headrace
