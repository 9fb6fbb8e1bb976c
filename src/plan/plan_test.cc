// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/test_support.h"

namespace headrace {
namespace {

std::vector<uint32_t> sizes() {
  return std::vector<uint32_t>(100, 10);
}

std::unique_ptr<Plan> plan_of(const PlanOptions& options) {
  return Plan::make({make_source(sizes())}, options).value();
}

std::string failure_of(const Result<std::unique_ptr<Plan>>& result) {
  return result.ok() ? "" : result.status().text();
}

TEST(PlanTest, AnEpochTakesEverySampleOnceOverAllRanks) {
  std::set<uint64_t> seen;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const auto plan =
        plan_of({.shuffle = Shuffle::kPool,
                 .cut = {.batch = 64, .rank = rank, .world = 4, .tail = Tail::kKeep}});
    ASSERT_EQ(plan->steps_in_epoch(), 16u);
    std::vector<PlanSlot> slots;
    for (uint64_t g = 0; plan->steps_from(0, g) > 0;) {
      g = plan->step(0, g, slots).value();
      for (const PlanSlot& s : slots) EXPECT_TRUE(seen.insert(s.sample).second);
    }
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(PlanTest, AfterTheLastStepComesTheNextEpoch) {
  const auto plan = plan_of({.cut = {.batch = 64}});
  EXPECT_EQ(plan->this_or_next_epoch({3, 0}), (PlanPosition{3, 0}));
  EXPECT_EQ(plan->this_or_next_epoch({3, 936}), (PlanPosition{3, 936}));
  EXPECT_EQ(plan->this_or_next_epoch({3, 960}), (PlanPosition{4, 0}));  // 40 are left and dropped
}

TEST(PlanTest, ARestShorterThanTheBatchIsNoStepUnderDrop) {
  const auto plan = plan_of({.cut = {.batch = 8}});
  const PlanState state = plan->state({0, 992});
  const auto wide = Plan::resume({make_source(sizes())}, {.cut = {.batch = 64}}, state).value();
  EXPECT_EQ(wide->steps_from(0, 992), 0u);
  std::vector<PlanSlot> slots;
  EXPECT_EQ(wide->step(0, 992, slots).status().message(),
            "epoch 0 has no step at position 992 of 1000");
}

TEST(PlanTest, PadsWrapAroundRepeatedlyWhenTheEpochIsShort) {
  const auto plan = Plan::make(
      {make_source({2, 1})}, {.shuffle = Shuffle::kNone, .cut = {.batch = 8, .tail = Tail::kPad}});
  std::vector<PlanSlot> slots;
  EXPECT_EQ(plan.value()->step(0, 0, slots).value(), 3u);
  std::vector<uint64_t> samples;
  std::vector<bool> valid;
  for (const PlanSlot& s : slots) {
    samples.push_back(s.sample);
    valid.push_back(s.valid);
  }
  EXPECT_EQ(samples, (std::vector<uint64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(valid, (std::vector<bool>{true, true, true, false, false, false, false, false}));
}

TEST(PlanTest, ImpossibleArgumentsAreRefused) {
  const PlanSource a = make_source(sizes(), "a");
  const PlanSource b = make_source(sizes(), "b");
  const PlanSource empty = make_source({0, 0}, "e");
  EXPECT_EQ(failure_of(Plan::make({}, {})), "a plan needs at least one source");
  EXPECT_EQ(failure_of(Plan::make({a, b}, {})), "several sources need weights");
  EXPECT_EQ(failure_of(Plan::make({a, a}, {.weights = {1, 1}})), "two sources are named 'a'");
  EXPECT_EQ(failure_of(Plan::make({a, b}, {.weights = {1}})), "1 weights for 2 sources");
  EXPECT_EQ(failure_of(Plan::make({a, empty}, {.weights = {1, 1}})),
            "source 'e' has a weight but no samples");
  EXPECT_EQ(failure_of(Plan::make({a}, {.reassign_every = 0})),
            "reassign_every must be at least 1 epoch");
  EXPECT_EQ(failure_of(Plan::make({a}, {.epoch_draws = 5})), "epoch_draws is for mixtures");
  EXPECT_EQ(failure_of(Plan::make({a}, {.cut = {.batch = 3, .world = 2}})),
            "a global batch of 3 does not divide by 2 ranks");
  EXPECT_EQ(failure_of(Plan::make({a, empty}, {.weights = {1, 0}})), "");
  EXPECT_EQ(plan_of({})->set_weights({1}, 5).message(),
            "weights are for mixtures: there is one source");
}

TEST(PlanTest, DataWithoutSamplesHasNoSteps) {
  for (const Shuffle shuffle : {Shuffle::kAuto, Shuffle::kNone, Shuffle::kPool}) {
    const auto plan =
        Plan::make({make_source({0})}, {.shuffle = shuffle, .cut = {.tail = Tail::kPad}});
    EXPECT_EQ(plan.value()->steps_in_epoch(), 0u);
  }
}

TEST(PlanTest, AnIndexThatContradictsItselfIsAnError) {
  const BlockTree good = BlockTree::build(sizes(), 4).value();
  std::vector<uint32_t> last(good.tables().last.begin(), good.tables().last.end());
  last[50] += 1;
  BlockTables tables = good.tables();
  tables.last = last;
  PlanSource source{"", "f00d", nullptr, 0};
  source.tree = std::make_shared<const BlockTree>(BlockTree::view(tables, nullptr, 4).value());
  const auto plan =
      Plan::make({source}, {.shuffle = Shuffle::kPool, .cut = {.batch = 1000}}).value();
  std::vector<PlanSlot> slots;
  EXPECT_EQ(plan->step(0, 0, slots).status().code(), Code::kCorrupt);
}

TEST(PlanTest, AMixtureKeepsEachSourcesOwnEpochs) {
  const std::vector<PlanSource> sources{make_source({5}, "small"), make_source({500}, "large")};
  const auto plan =
      Plan::make(sources, {.cut = {.batch = 64}, .weights = {0.5, 0.5}, .epoch_draws = 640});
  std::vector<PlanSlot> slots;
  std::vector<std::multiset<uint64_t>> small(64);
  for (uint64_t g = 0; g < 640;) {
    g = plan.value()->step(0, g, slots).value();
    for (const PlanSlot& s : slots) {
      if (s.source == 0) small[s.epoch].insert(s.sample);
    }
  }
  for (const auto& epoch : small) EXPECT_EQ(epoch, (std::multiset<uint64_t>{0, 1, 2, 3, 4}));
}

// Sorted by (lane, source): the parts of 8 ranks hold both sources about evenly.
TEST(PlanTest, NoRankOfAMixtureSeesOneSourceOnly) {
  const std::vector<uint32_t> sizes(4096, 100);
  const std::vector<PlanSource> sources{make_source(sizes, "a"), make_source(sizes, "b")};
  for (const Shuffle shuffle : {Shuffle::kPool, Shuffle::kGlobal, Shuffle::kNone}) {
    for (uint32_t rank = 0; rank < 8; ++rank) {
      const auto plan = Plan::make(sources, {.shuffle = shuffle,
                                             .cut = {.batch = 512, .rank = rank, .world = 8},
                                             .weights = {0.5, 0.5}});
      std::vector<PlanSlot> slots;
      plan.value()->step(0, 512, slots).value();
      uint64_t from_a = 0;
      for (const PlanSlot& s : slots) from_a += s.source == 0;
      EXPECT_GE(from_a, 16u);
      EXPECT_LE(from_a, 48u);
    }
  }
}

TEST(PlanTest, WeightsChangeAtTheDrawThatIsNamed) {
  const std::vector<PlanSource> sources{make_source({50}, "a"), make_source({50}, "b")};
  const auto plan =
      Plan::make(sources, {.cut = {.batch = 10}, .weights = {1, 0}, .epoch_draws = 100}).value();
  ASSERT_TRUE(plan->set_weights({0, 1}, 135).ok());
  std::vector<PlanSlot> slots;
  plan->step(1, 30, slots).value();
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(slots[i].source, i < 5 ? 0u : 1u);
  const PlanState state = plan->state({1, 40});
  const MixtureState folded = state.mixture.value_or(MixtureState{});
  EXPECT_EQ(folded.schedule.size(), 1u);
  EXPECT_EQ(folded.offsets, (std::vector<uint64_t>{135, 0}));
  const auto resumed = Plan::resume(sources, {.weights = {1, 0}}, state);
  EXPECT_EQ(resumed.value()->step(1, 20, slots).status().message(),
            "epoch 1, position 20 lies before draw 135, where the state's history begins");
}

}  // namespace
}  // namespace headrace
