// SPDX-License-Identifier: Apache-2.0
//
// Orders of plan_version 1, as they are and must stay: a run that was started with
// one release goes on with the next.  A change here is a new plan_version.
#include <gtest/gtest.h>

#include "plan/plan.h"
#include "plan/test_support.h"

namespace headrace {
namespace {

using Numbers = std::vector<uint64_t>;

std::vector<uint32_t> sizes_of(uint32_t blocks, uint32_t modulus) {
  std::vector<uint32_t> sizes(blocks);
  for (uint32_t i = 0; i < blocks; ++i) sizes[i] = i % modulus;
  return sizes;
}

// Samples at the positions from `g` on, `step` apart.
Numbers samples(const std::vector<uint32_t>& sizes, uint32_t fan_out, const OrderShape& shape,
                const OrderName& name, uint64_t g = 0, uint64_t step = 1) {
  const auto tree = make_tree(sizes, fan_out);
  Order order(*tree, name, shape);
  Numbers out;
  for (int i = 0; i < 16; ++i, g += step) out.push_back(order.at(g));
  return out;
}

constexpr OrderShape kGlobal{.mode = OrderMode::kGlobal};

TEST(GoldenTest, Global) {
  EXPECT_EQ(samples({10, 10}, kFanOut, kGlobal, {.seed = 42}),
            (Numbers{12, 17, 11, 13, 8, 18, 4, 14, 0, 19, 2, 10, 7, 5, 1, 15}));
  EXPECT_EQ(samples({65536}, kFanOut, kGlobal, {.seed = 42, .epoch = 1}),
            (Numbers{39636, 6505, 61118, 45100, 52470, 7664, 30920, 25235, 45667, 5148, 48576,
                     48471, 16317, 27938, 8239, 52166}));
  EXPECT_EQ(samples({65537}, kFanOut, kGlobal, {.seed = 42, .epoch = 1}),
            (Numbers{49333, 13676, 63996, 27273, 46026, 36097, 64305, 15359, 19376, 58015, 64349,
                     8573, 3752, 19120, 7784, 61328}));
  EXPECT_EQ(samples({4000000000, 4000000000}, kFanOut, kGlobal, {.source = "wiki"}, 5, 400000000),
            (Numbers{7028497545, 5470244567, 2709199172, 1553089291, 1197540938, 820913365,
                     3705872419, 7186406672, 3652124976, 2652911521, 3019664727, 5266572856,
                     4793000389, 3505504135, 4890811578, 6741129388}));
}

TEST(GoldenTest, Pool) {
  EXPECT_EQ(samples(sizes_of(50, 7), 3, {OrderMode::kPool, 8, 10}, {.seed = 42}),
            (Numbers{87, 145, 103, 60, 25, 82, 94, 64, 7, 143, 43, 62, 24, 80, 95, 110}));
  EXPECT_EQ(samples(sizes_of(50, 7), 1024, {OrderMode::kPool, 1, 6}, {.seed = 1, .epoch = 3}),
            (Numbers{91, 105, 92, 106, 90, 107, 19, 18, 17, 93, 15, 16, 132, 110, 108, 20}));
  EXPECT_EQ(
      samples(sizes_of(40, 100), 5, {OrderMode::kPool, 64, 17},
              {.seed = 7, .epoch = 9, .reassign_every = 4}, 40, 41),
      (Numbers{279, 123, 110, 238, 770, 667, 60, 553, 589, 362, 324, 732, 751, 142, 213, 389}));
  EXPECT_EQ(
      samples({300000, 200000, 100000}, 2, {OrderMode::kPool, 4, 70000}, {.seed = 3}, 7, 35000),
      (Numbers{264272, 250100, 527939, 297582, 272926, 278635, 507985, 277878, 514358, 501884,
               545850, 588496, 542684, 543519, 551504, 594261}));
}

// More blocks than one node holds, at the fan-out that is in use.
TEST(GoldenTest, PoolOfALargeTree) {
  EXPECT_EQ(samples(sizes_of(3000, 11), kFanOut, {OrderMode::kPool, 256, 10}, {.seed = 42}, 1, 901),
            (Numbers{11415, 770, 6921, 5529, 13196, 7106, 13960, 7441, 14912, 1564, 8040, 2874,
                     5687, 6530, 10931, 12784}));
}

TEST(GoldenTest, Substitutes) {
  const auto tree = make_tree(sizes_of(50, 7));
  Order order(*tree, {.seed = 42}, {OrderMode::kPool, 8, 10});
  Numbers out;
  for (uint64_t attempt = 1; attempt < 9; ++attempt) {
    out.push_back(order.substitute(57, attempt).value_or(~uint64_t{0}));
  }
  EXPECT_EQ(out, (Numbers{102, 108, 43, 110, 103, 104, 101, 44}));
}

// One rank's samples of a step, those of source k as 1000·k + sample; pads are negative.
std::vector<int64_t> step_of(Plan& plan, uint64_t epoch, uint64_t g) {
  std::vector<PlanSlot> slots;
  EXPECT_TRUE(plan.step(epoch, g, slots).ok());
  std::vector<int64_t> out;
  for (const PlanSlot& s : slots) {
    const auto sample = static_cast<int64_t>(uint64_t{1000} * s.source + s.sample);
    out.push_back(s.valid ? sample : -sample);
  }
  return out;
}

using Signed = std::vector<int64_t>;

// A plan of given lanes and pools: the rule that chooses them may change, orders may not.
std::unique_ptr<Plan> plan_of(const std::vector<PlanSource>& sources, PlanOptions options,
                              uint32_t lanes, const std::vector<uint64_t>& pools) {
  options.seed = 42;
  options.shuffle = lanes > 0 ? Shuffle::kPool : Shuffle::kGlobal;
  options.cut = {.batch = 24, .rank = 1, .world = 2, .tail = Tail::kPad};
  PlanState state = Plan::make(sources, options).value()->state({});
  state.lanes = lanes > 0 ? lanes : 1;
  state.pools = pools;
  return Plan::resume(sources, options, state).value();
}

TEST(GoldenTest, StepsOfARank) {
  const auto plan = plan_of({make_source(sizes_of(50, 7))}, {}, 16, {6});
  EXPECT_EQ(step_of(*plan, 0, 0), (Signed{44, 104, 130, 6, 7, 142, 13, 93, 65, 61, 60, 138}));
  EXPECT_EQ(step_of(*plan, 5, 133), (Signed{64, 105, 7, 93, 81, 26, 46, -1, -40, -25, -11, -102}));
  EXPECT_EQ(plan->plan_id().hex(), "39c0e29ca81e7cea00c641b4214c306e");
}

TEST(GoldenTest, Mixtures) {
  const PlanOptions options{.weights = {5, 3, 1}, .epoch_draws = 263};
  const std::vector<PlanSource> sources{make_source(sizes_of(50, 7), "a"),
                                        make_source(sizes_of(30, 9), "b"), make_source({5}, "c")};
  auto plan = plan_of(sources, options, 8, {6, 8, 10});
  EXPECT_EQ(step_of(*plan, 0, 48),
            (Signed{107, 1016, 2003, 100, 101, 1106, 35, 113, 1076, 2004, 79, 81}));
  EXPECT_EQ(step_of(*plan, 0, 251),
            (Signed{26, 1046, 1065, 2004, 51, 1034, -114, -1057, -110, -1067, -146, -2001}));
  ASSERT_TRUE(plan->set_weights({0, 1, 1}, 590).ok());
  EXPECT_EQ(step_of(*plan, 2, 48),
            (Signed{69, 110, 1015, 2003, 88, 1058, 145, 1055, 2004, 98, 96, 1032}));
  EXPECT_EQ(plan->plan_id().hex(), "e2effa7aa5a80bb9a13dafcf3964140c");
  plan = plan_of(sources, options, 0, {1, 1, 1});
  EXPECT_EQ(step_of(*plan, 0, 48),
            (Signed{135, 41, 2001, 83, 113, 1, 1107, 105, 14, 2003, 121, 1010}));
}

}  // namespace
}  // namespace headrace
