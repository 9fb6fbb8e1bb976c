// SPDX-License-Identifier: Apache-2.0
#include "plan/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/test_support.h"

namespace headrace {
namespace {

constexpr OrderShape kPooled{OrderMode::kPool, 8, 10};

std::vector<uint64_t> all_of(Order& order) {
  std::vector<uint64_t> out(order.samples());
  for (uint64_t g = 0; g < out.size(); ++g) out[g] = order.at(g);
  return out;
}

std::vector<uint64_t> epoch_of(const BlockTree& tree, const OrderName& name,
                               const OrderShape& shape) {
  Order order(tree, name, shape);
  return all_of(order);
}

TEST(OrderTest, NoShuffleIsTheIdentity) {
  const auto tree = make_tree({3, 0, 2});
  EXPECT_EQ(epoch_of(*tree, {.seed = 9}, {}), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

TEST(OrderTest, EachNameGivesAnotherOrder) {
  const auto tree = make_tree(std::vector<uint32_t>(50, 5));
  for (const OrderShape& shape : {kPooled, OrderShape{.mode = OrderMode::kGlobal}}) {
    const auto base = epoch_of(*tree, {.seed = 1, .source = "a", .epoch = 1}, shape);
    EXPECT_EQ(base, epoch_of(*tree, {.seed = 1, .source = "a", .epoch = 1}, shape));
    EXPECT_NE(base, epoch_of(*tree, {.seed = 2, .source = "a", .epoch = 1}, shape));
    EXPECT_NE(base, epoch_of(*tree, {.seed = 1, .source = "b", .epoch = 1}, shape));
    EXPECT_NE(base, epoch_of(*tree, {.seed = 1, .source = "a", .epoch = 2}, shape));
  }
}

TEST(OrderTest, LookingUpAtRandomEqualsReadingThrough) {
  const auto tree = make_tree({7, 0, 90, 1, 1, 1, 30, 0, 12, 5, 44});
  Order through(*tree, {.seed = 3}, kPooled);
  Order random(*tree, {.seed = 3}, kPooled);
  const auto expected = all_of(through);
  Rng rng{Key(1)};
  for (int i = 0; i < 3000; ++i) {
    const uint64_t g = rng.below(expected.size());
    ASSERT_EQ(random.at(g), expected[g]);
  }
}

// The samples of each lane, as a set, are those of its blocks: they stay for E epochs.
TEST(OrderTest, ReassignEveryKeepsTheBlockOrderForSoManyEpochs) {
  const auto tree = make_tree(std::vector<uint32_t>(64, 10));
  const auto lane_sets = [&](uint64_t epoch) {
    Order order(*tree, {.seed = 5, .epoch = epoch, .reassign_every = 3}, kPooled);
    std::vector<std::set<uint64_t>> sets(8);
    for (uint64_t g = 0; g < order.samples(); ++g) sets[order.lane_of(g)].insert(order.at(g));
    return sets;
  };
  EXPECT_EQ(lane_sets(3), lane_sets(5));
  EXPECT_NE(lane_sets(2), lane_sets(3));
  EXPECT_NE(epoch_of(*tree, {.seed = 5, .epoch = 3, .reassign_every = 3}, kPooled),
            epoch_of(*tree, {.seed = 5, .epoch = 4, .reassign_every = 3}, kPooled));
}

// The position after g in its lane is the first substitute, unless g ends its pool.
TEST(OrderTest, LanesTurnToTheirNextPoolsAtDifferentSteps) {
  const auto tree = make_tree(std::vector<uint32_t>(640, 10));
  Order order(*tree, {}, {OrderMode::kPool, 16, 32});
  uint64_t turns = 0;
  for (uint64_t t = 0; t + 1 < order.samples() / 16; ++t) {
    uint64_t at_once = 0;
    for (uint64_t g = 16 * t; g < 16 * t + 16; ++g) {
      at_once += order.substitute(g, 1) != order.at(g + 16);
    }
    EXPECT_LE(at_once, 1u);
    turns += at_once;
  }
  EXPECT_NEAR(static_cast<double>(turns), 640 * 10 / 32.0, 16);
}

TEST(OrderTest, ASubstituteIsAnotherOfThePoolUntilAllWereTried) {
  const auto tree = make_tree(std::vector<uint32_t>(40, 5));
  Order order(*tree, {.seed = 1}, kPooled);
  for (const uint64_t g : {0u, 3u, 77u, 150u, 199u}) {
    std::set<uint64_t> tried{order.at(g)};
    uint64_t attempt = 1;
    for (; order.substitute(g, attempt); ++attempt) tried.insert(*order.substitute(g, attempt));
    EXPECT_EQ(tried.size(), attempt);  // none twice
    EXPECT_LE(tried.size(), kPooled.pool);
  }
}

TEST(OrderTest, WithoutPoolsASubstituteIsTheNextOfTheEpoch) {
  const auto tree = make_tree({4, 6});
  Order order(*tree, {.seed = 1}, {.mode = OrderMode::kGlobal});
  EXPECT_EQ(order.substitute(9, 1), order.at(0));
  EXPECT_EQ(order.substitute(2, 9), order.at(1));
  EXPECT_EQ(order.substitute(2, 10), std::nullopt);
}

// A pool above 65,536 samples has a Feistel permutation, one at the limit a table.
TEST(OrderTest, HugePoolsAreBijectionsToo) {
  const auto tree = make_tree({300000, 1, 0, 70000});
  for (const uint64_t pool : {65536u, 65537u, 1000000u}) {
    auto all = epoch_of(*tree, {.seed = 2}, {OrderMode::kPool, 2, pool});
    std::sort(all.begin(), all.end());
    for (uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
  }
}

TEST(OrderTest, TheLargestPoolThatAStateMayNameWorks) {
  const auto tree = make_tree({5, 6});
  auto all = epoch_of(*tree, {.seed = 2}, {OrderMode::kPool, 65536, uint64_t{1} << 63});
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(ShapeTest, FollowsFromTheIndexAlone) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const SourceSize small{1000000, 4096, 16 * kGiB};
  const SourceSize large{64000000, 262144, 1024 * kGiB};
  EXPECT_EQ(choose_shape(small, Shuffle::kAuto), (OrderShape{OrderMode::kGlobal, 1, 1}));
  EXPECT_EQ(choose_shape(large, Shuffle::kNone), (OrderShape{OrderMode::kNone, 1, 1}));
  EXPECT_EQ(choose_shape(large, Shuffle::kGlobal), (OrderShape{OrderMode::kGlobal, 1, 1}));
  // Where samples share row groups, global is for what one window holds.
  const SourceSize shared{100000, 256, 16 * kGiB, true};
  EXPECT_EQ(choose_shape(shared, Shuffle::kAuto), (OrderShape{OrderMode::kPool, 4, 781}));
  const SourceSize little{100000, 8, kGiB / 2, true};
  EXPECT_EQ(choose_shape(little, Shuffle::kAuto), (OrderShape{OrderMode::kGlobal, 1, 1}));
  // 1 TiB in 4 MiB blocks: the window is 16 GiB of 8 MiB pools.
  EXPECT_EQ(choose_shape(large, Shuffle::kAuto), (OrderShape{OrderMode::kPool, 2048, 488}));
  // 16 GiB: bytes/32 is 512 MiB, 64 pools.
  EXPECT_EQ(choose_shape(small, Shuffle::kPool), (OrderShape{OrderMode::kPool, 64, 488}));
  EXPECT_EQ(choose_shape(large, Shuffle::kAuto, 3 * kGiB).lanes, 512u);  // 384 is as near to 512
  EXPECT_EQ(choose_shape(large, Shuffle::kAuto, 1).lanes, 1u);
  EXPECT_EQ(choose_shape(large, Shuffle::kAuto, 1u << 20).lanes, 1u);
  EXPECT_EQ(
      choose_shape({1000000000000, 10000000, 40000 * kGiB}, Shuffle::kAuto, 9000 * kGiB).lanes,
      kMaxLanes);
}

TEST(ShapeTest, AWindowLargerThanTheDataIsTheData) {
  // 10 blocks are 5 pools: the 64 lanes of 512 MiB would leave nothing to permute in each.
  EXPECT_EQ(choose_shape({1000, 10, 40 << 20}, Shuffle::kPool),
            (OrderShape{OrderMode::kPool, 4, 200}));
  EXPECT_EQ(choose_shape({1, 1, 10}, Shuffle::kPool), (OrderShape{OrderMode::kPool, 1, 2}));
  EXPECT_EQ(choose_shape({}, Shuffle::kPool), (OrderShape{OrderMode::kPool, 1, 1}));
}

TEST(ShapeTest, MixedSourcesShareModeAndLanes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const std::vector<SourceSize> two{{64000000, 262144, 1024 * kGiB}, {1000, 256, kGiB}};
  const auto shapes = choose_shapes(two, Shuffle::kAuto);
  EXPECT_EQ(shapes[0], (OrderShape{OrderMode::kPool, 1024, 488}));  // 16 GiB / (8 + 8 MiB)
  EXPECT_EQ(shapes[1], (OrderShape{OrderMode::kPool, 1024, 8}));
  // Never fewer lanes than a source alone would have: 512 MiB each.
  const std::vector<SourceSize> many(100, SourceSize{64000, 256, kGiB});
  EXPECT_EQ(choose_shapes(many, Shuffle::kPool)[0].lanes, 64u);
}

}  // namespace
}  // namespace headrace
