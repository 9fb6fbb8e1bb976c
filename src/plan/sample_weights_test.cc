// SPDX-License-Identifier: Apache-2.0
#include "plan/sample_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "plan/plan.h"

namespace headrace {
namespace {

std::shared_ptr<const SampleWeights> weights_of(const std::vector<uint64_t>& w, uint64_t draws) {
  return SampleWeights::make(w, draws).value();
}

std::vector<uint64_t> counts_of(const SampleWeights& weights, uint64_t start) {
  std::vector<uint64_t> counts(weights.samples());
  for (uint64_t v = 0; v < weights.draws(); ++v) {
    const SampleWeights::Draw draw = weights.at(start, v);
    EXPECT_EQ(draw.repeat, counts[draw.sample]);
    ++counts[draw.sample];
  }
  return counts;
}

TEST(SampleWeights, each_count_is_its_expectation_rounded_down_or_up) {
  const std::vector<uint64_t> w = {5, 0, 1, 100, 7, 7, 0, 1'000'000'007, 3};
  const double sum = static_cast<double>(std::accumulate(w.begin(), w.end(), uint64_t{0}));
  for (const uint64_t draws : {1u, 9u, 1000u, 12345u}) {
    const auto weights = weights_of(w, draws);
    for (uint64_t epoch = 0; epoch < 20; ++epoch) {
      const auto counts = counts_of(*weights, weights->start(3, "", epoch));
      for (size_t i = 0; i < w.size(); ++i) {
        const double expected = static_cast<double>(draws) * static_cast<double>(w[i]) / sum;
        EXPECT_LT(std::abs(static_cast<double>(counts[i]) - expected), 1) << i;
        EXPECT_TRUE(w[i] > 0 || counts[i] == 0);
      }
    }
  }
}

TEST(SampleWeights, every_start_gives_all_draws_and_their_mean_is_the_expectation) {
  const std::vector<uint64_t> w = {3, 1, 0, 4};
  const auto weights = weights_of(w, 5);
  std::vector<uint64_t> sums(w.size());
  for (uint64_t r = 0; r < 8; ++r) {
    const auto counts = counts_of(*weights, r);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}), 5u);
    for (size_t i = 0; i < w.size(); ++i) sums[i] += counts[i];
  }
  for (size_t i = 0; i < w.size(); ++i) EXPECT_EQ(sums[i], 5 * w[i]);  // exactly: 8·(5·w/8)
}

TEST(SampleWeights, equal_weights_give_each_sample_once) {
  const auto weights = weights_of(std::vector<uint64_t>(1000, 77), 1000);
  for (uint64_t epoch = 0; epoch < 5; ++epoch)
    EXPECT_EQ(counts_of(*weights, weights->start(1, "a", epoch)), std::vector<uint64_t>(1000, 1));
}

TEST(SampleWeights, blocks_sum_to_the_draws) {
  const auto weights = weights_of({1, 1, 1, 97, 0, 0}, 1000);
  const auto blocks = weights->blocks(std::vector<uint32_t>{2, 0, 2, 2}).value();
  EXPECT_EQ(blocks, (std::vector<uint32_t>{20, 0, 980, 0}));
}

TEST(SampleWeights, what_makes_no_sense_is_refused) {
  EXPECT_FALSE(SampleWeights::make(std::vector<uint64_t>{0, 0}, 2).ok());
  EXPECT_FALSE(SampleWeights::make(std::vector<uint64_t>{1}, 0).ok());
  EXPECT_FALSE(
      SampleWeights::make(std::vector<uint64_t>{uint64_t{1} << 62, uint64_t{1} << 62}, 1).ok());
  EXPECT_FALSE(weights_of({1, 2}, 2)->blocks(std::vector<uint32_t>{1}).ok());
}

// A plan over weighted samples.
class WeightedPlan : public ::testing::Test {
 protected:
  static PlanSource source(const std::vector<uint64_t>& w, uint64_t draws) {
    const auto weights = weights_of(w, draws);
    const std::vector<uint32_t> samples(w.size() / 10, 10);
    auto tree = BlockTree::build(weights->blocks(samples).value()).value();
    return {.name = "",
            .fingerprint = weights->fingerprint().hex(),
            .tree = std::make_shared<const BlockTree>(std::move(tree)),
            .bytes = 1 << 20,
            .weights = weights};
  }
  // (sample, repeat) by position.
  static std::vector<std::pair<uint64_t, uint64_t>> epoch(const PlanSource& s, Shuffle shuffle,
                                                          uint64_t number, uint32_t world = 1) {
    std::vector<std::pair<uint64_t, uint64_t>> out;
    for (uint32_t rank = 0; rank < world; ++rank) {
      auto plan =
          Plan::make({s}, {.seed = 5,
                           .shuffle = shuffle,
                           .window_bytes = 1 << 16,
                           .cut = {.batch = 12, .rank = rank, .world = world, .tail = Tail::kKeep}})
              .value();
      std::vector<PlanSlot> slots;
      for (uint64_t g = 0; plan->steps_from(number, g) > 0;) {
        g = plan->step(number, g, slots).value();
        for (const PlanSlot& slot : slots) out.emplace_back(slot.sample, slot.repeat);
      }
    }
    return out;
  }
};

TEST_F(WeightedPlan, an_epoch_is_what_the_weights_say_whatever_the_order_and_the_ranks) {
  std::vector<uint64_t> w;
  for (uint64_t i = 0; i < 200; ++i) w.push_back(i % 7);
  const PlanSource s = source(w, 350);
  for (uint64_t e = 0; e < 3; ++e) {
    std::vector<std::pair<uint64_t, uint64_t>> want;
    for (uint64_t v = 0; v < 350; ++v) {
      const auto draw = s.weights->at(s.weights->start(5, "", e), v);
      want.emplace_back(draw.sample, draw.repeat);
    }
    EXPECT_EQ(epoch(s, Shuffle::kNone, e), want);
    std::sort(want.begin(), want.end());
    for (const Shuffle shuffle : {Shuffle::kGlobal, Shuffle::kPool})
      for (const uint32_t world : {1u, 3u}) {
        auto got = epoch(s, shuffle, e, world);
        std::sort(got.begin(), got.end());
        EXPECT_EQ(got, want);
      }
  }
}

TEST_F(WeightedPlan, its_state_is_of_version_2_and_others_stay_what_they_were) {
  const PlanSource weighted = source(std::vector<uint64_t>(40, 3), 40);
  PlanSource plain = weighted;
  plain.weights = nullptr;
  EXPECT_EQ(Plan::make({weighted}, {}).value()->state({}).plan_version, 2u);
  EXPECT_EQ(Plan::make({plain}, {}).value()->state({}).plan_version, 1u);
}

TEST_F(WeightedPlan, a_plan_goes_on_from_its_state_and_versions_do_not_mix) {
  const PlanSource s = source(std::vector<uint64_t>(40, 3), 55);
  const auto plan = Plan::make({s}, {.seed = 5}).value();
  EXPECT_TRUE(Plan::resume({s}, {.seed = 5}, plan->state({2, 30})).ok());
  PlanState other = plan->state({2, 30});
  other.plan_version = 1;
  EXPECT_FALSE(Plan::resume({s}, {.seed = 5}, other).ok());
  other.plan_version = 3;
  EXPECT_FALSE(Plan::resume({s}, {.seed = 5}, other).ok());
}

}  // namespace
}  // namespace headrace
