// SPDX-License-Identifier: Apache-2.0
#include "plan/epoch_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "plan/plan.h"
#include "plan/random_shapes.h"
#include "plan/test_support.h"

namespace headrace {
namespace {

using Rows = std::vector<std::vector<uint32_t>>;

std::vector<uint32_t> random_lengths(Rng& rng, uint64_t count, uint64_t most) {
  std::vector<uint32_t> out(count);
  for (uint32_t& n : out) n = static_cast<uint32_t>(rng.below(most + 1));
  return out;
}

PlanSource grouped(const std::vector<uint32_t>& sizes, std::vector<uint32_t> lengths,
                   const GroupRule& rule) {
  auto groups = EpochGroups::make(Grouping::make(std::move(lengths), rule).value(),
                                  BlockTree::build(sizes).value())
                    .value();
  PlanSource out = make_source(sizes);
  out.tree = groups->as_they_lie().tree;
  out.groups = std::move(groups);
  return out;
}

// The rows of the steps from a state on to the end of its epoch, on all ranks, step after step.
Rows rows_from(const PlanSource& source, const PlanOptions& options, const PlanState& state,
               std::vector<size_t>* steps = nullptr) {
  std::vector<Rows> ranks(options.cut.world);
  std::vector<std::vector<size_t>> ends(options.cut.world);
  for (uint32_t rank = 0; rank < options.cut.world; ++rank) {
    PlanOptions mine = options;
    mine.cut.rank = rank;
    const auto plan = Plan::resume({source}, mine, state).value();
    std::vector<PlanSlot> slots;
    for (uint64_t g = state.g; plan->steps_from(state.epoch, g) > 0;) {
      g = plan->step(state.epoch, g, slots).value();
      for (const PlanSlot& slot : slots) {
        const auto members = plan->members(slot);
        ranks[rank].emplace_back(members.begin(), members.end());
      }
      ends[rank].push_back(ranks[rank].size());
    }
  }
  Rows out;
  for (size_t step = 0; step < ends[0].size(); ++step) {
    for (uint32_t rank = 0; rank < options.cut.world; ++rank) {
      EXPECT_EQ(ends[rank].size(), ends[0].size());  // equal steps
      const auto begin =
          ranks[rank].begin() + static_cast<std::ptrdiff_t>(step == 0 ? 0 : ends[rank][step - 1]);
      out.insert(out.end(), begin,
                 ranks[rank].begin() + static_cast<std::ptrdiff_t>(ends[rank][step]));
    }
    if (steps != nullptr) steps->push_back(out.size());
  }
  return out;
}

struct Shape {
  std::vector<uint32_t> sizes, lengths;
  GroupRule rule;
  PlanOptions options;
};

Shape random_shape_of_groups(Rng& rng) {
  Shape s;
  s.sizes = random_sizes(rng);
  const uint64_t samples = std::accumulate(s.sizes.begin(), s.sizes.end(), uint64_t{0});
  const uint64_t most = 1 + rng.below(60);
  s.lengths = random_lengths(rng, samples, most);
  if (samples == 0 ||
      std::all_of(s.lengths.begin(), s.lengths.end(), [](uint32_t n) { return n == 0; })) {
    s.sizes = {3, 2};
    s.lengths = {1, 1, 0, 1, 1};
  }
  s.rule.window = 1 + rng.below(40);
  if (rng.below(2) == 0)
    s.rule.capacity = most;
  else
    s.rule.budget = {.most = most + rng.below(100),
                     .cost = rng.below(2) == 0 ? BatchCost::kSum : BatchCost::kPadded,
                     .by_length = rng.below(3) > 0};
  s.options = {.seed = rng.next(),
               .shuffle = rng.below(2) == 0 ? Shuffle::kGlobal : Shuffle::kPool,
               .window_bytes = 1 << rng.below(20),
               .reassign_every = 1 + rng.below(3),
               .cut = random_cut(rng, Tail::kKeep)};
  return s;
}

TEST(EpochGroups, every_epoch_has_every_sample_with_a_token_once) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng{Key(seed).with("epoch groups")};
    const Shape s = random_shape_of_groups(rng);
    const PlanSource source = grouped(s.sizes, s.lengths, s.rule);
    const auto plan = Plan::make({source}, s.options).value();
    ASSERT_EQ(plan->state({}).plan_version, kRegroupedPlanVersion);
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Rows rows = rows_from(source, s.options, plan->state({epoch, 0}));
      EXPECT_EQ(rows.size(), plan->epoch_length(epoch));
      std::vector<int> seen(s.lengths.size());
      for (const auto& row : rows) {
        uint64_t sum = 0, longest = 0;
        for (const uint32_t sample : row) {
          ++seen[sample];
          sum += s.lengths[sample];
          longest = std::max<uint64_t>(longest, s.lengths[sample]);
        }
        if (s.rule.capacity > 0)
          EXPECT_LE(sum, s.rule.capacity);
        else
          EXPECT_LE(s.rule.budget.cost == BatchCost::kSum ? sum : longest * row.size(),
                    s.rule.budget.most);
      }
      for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], s.lengths[i] > 0 ? 1 : 0);
      ++tally().shapes;
    }
  }
}

TEST(EpochGroups, a_run_goes_on_from_every_step_on_other_ranks) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng{Key(seed).with("resume groups")};
    const Shape s = random_shape_of_groups(rng);
    const PlanSource source = grouped(s.sizes, s.lengths, s.rule);
    const auto plan = Plan::make({source}, s.options).value();
    const uint64_t epoch = rng.below(3);
    std::vector<size_t> steps;
    const Rows straight = rows_from(source, s.options, plan->state({epoch, 0}), &steps);
    for (const size_t after : steps) {
      PlanOptions other = s.options;
      other.cut = random_cut(rng, Tail::kKeep);
      // Other data objects, as another process has them.
      const Rows rest = rows_from(grouped(s.sizes, s.lengths, s.rule), other,
                                  plan->state({epoch, static_cast<uint64_t>(after)}));
      Rows left(straight.begin() + static_cast<std::ptrdiff_t>(after), straight.end());
      // Within a step ranks take parts in the order of lanes; over the epoch the rows are the same.
      Rows found = rest;
      std::sort(left.begin(), left.end());
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, left);
      ++tally().resumes;
    }
  }
}

TEST(EpochGroups, other_samples_share_a_row_in_the_next_epoch) {
  Rng rng{Key(5)};
  const std::vector<uint32_t> sizes(50, 40);
  const auto lengths = random_lengths(rng, 2000, 100);
  for (const Shuffle shuffle : {Shuffle::kGlobal, Shuffle::kPool}) {
    for (const bool anew : {true, false}) {
      const PlanSource source =
          grouped(sizes, lengths, {.capacity = 256, .window = 200, .anew = anew});
      const PlanOptions options{
          .seed = 9, .shuffle = shuffle, .cut = {.batch = 4, .tail = Tail::kKeep}};
      const auto plan = Plan::make({source}, options).value();
      std::set<std::pair<uint32_t, uint32_t>> together[2];
      for (uint64_t epoch = 0; epoch < 2; ++epoch)
        for (const auto& row : rows_from(source, options, plan->state({epoch, 0})))
          for (const uint32_t a : row)
            for (const uint32_t b : row)
              if (a < b) together[epoch].emplace(a, b);
      std::vector<std::pair<uint32_t, uint32_t>> both;
      std::set_intersection(together[0].begin(), together[0].end(), together[1].begin(),
                            together[1].end(), std::back_inserter(both));
      if (anew)
        EXPECT_LT(both.size() * 20, together[0].size());  // one pair of twenty at most
      else
        EXPECT_EQ(together[0], together[1]);
    }
  }
}

TEST(EpochGroups, a_state_says_whether_groups_are_made_anew) {
  Rng rng{Key(6)};
  const std::vector<uint32_t> sizes(10, 10);
  const auto lengths = random_lengths(rng, 100, 20);
  const PlanSource once = grouped(sizes, lengths, {.capacity = 32, .window = 30, .anew = false});
  const PlanSource anew = grouped(sizes, lengths, {.capacity = 32, .window = 30});
  const PlanOptions options{.seed = 4, .cut = {.batch = 2, .tail = Tail::kKeep}};
  const auto of_once = Plan::make({once}, options).value();
  EXPECT_EQ(of_once->state({}).plan_version, kWeightedPlanVersion);
  const PlanState middle = of_once->state({1, 4});
  EXPECT_EQ(rows_from(anew, options, middle), rows_from(once, options, middle));
  const auto resumed = Plan::resume({anew}, options, middle).value();
  ASSERT_EQ(resumed->differences().size(), 1u);
  EXPECT_EQ(
      resumed->differences()[0],
      "that samples are grouped anew each epoch is false in the state, true in the arguments");
  const PlanState other = Plan::make({anew}, options).value()->state({1, 4});
  EXPECT_EQ(rows_from(once, options, other), rows_from(anew, options, other));
  // Samples that are not grouped have no such state.
  PlanState wrong = other;
  const auto refused = Plan::resume({make_source(sizes)}, options, wrong);
  EXPECT_NE(refused.status().text().find("damaged"), std::string::npos);
}

TEST(EpochGroups, without_shuffling_every_epoch_is_as_the_data_lie) {
  const PlanSource source = grouped({4, 4}, {3, 3, 2, 1, 4, 4, 1, 3}, {.capacity = 4, .window = 4});
  const auto plan = Plan::make({source}, {.shuffle = Shuffle::kNone}).value();
  EXPECT_EQ(plan->state({}).plan_version, kWeightedPlanVersion);
  const Rows natural{{0, 3}, {1}, {2}, {4}, {5}, {6, 7}};
  const PlanOptions options{.shuffle = Shuffle::kNone, .cut = {.batch = 1, .tail = Tail::kKeep}};
  for (uint64_t epoch = 0; epoch < 2; ++epoch)
    EXPECT_EQ(rows_from(source, options, plan->state({epoch, 0})), natural);
}

// As they are and must stay: see golden_test.cc.
TEST(EpochGroups, golden) {
  const std::vector<uint32_t> lengths{3, 9, 4, 4, 7, 1, 2, 8, 5, 5, 6, 2, 3, 1, 10, 4};
  const PlanSource source = grouped({6, 4, 6}, lengths, {.capacity = 12, .window = 8});
  const auto rows = [&](Shuffle shuffle, uint64_t epoch) {
    const PlanOptions options{
        .seed = 42, .shuffle = shuffle, .cut = {.batch = 3, .tail = Tail::kKeep}};
    return rows_from(source, options, Plan::make({source}, options).value()->state({epoch, 0}));
  };
  EXPECT_EQ(rows(Shuffle::kGlobal, 0),
            (Rows{{8, 10}, {11, 15}, {0, 3}, {4, 9}, {5, 13, 14}, {6}, {1, 12}, {2, 7}}));
  EXPECT_EQ(rows(Shuffle::kGlobal, 7),
            (Rows{{0, 1}, {7, 15}, {4, 8}, {6, 14}, {12}, {2, 9, 11, 13}, {3, 5, 10}}));
  EXPECT_EQ(rows(Shuffle::kPool, 0),
            (Rows{{0, 1}, {7, 15}, {2, 4, 5}, {9}, {8, 11, 12, 13}, {3, 10}, {6, 14}}));
  EXPECT_EQ(rows(Shuffle::kPool, 7),
            (Rows{{11, 14}, {6, 8, 9}, {0, 1}, {10, 12, 13}, {4, 5, 15}, {2}, {3, 7}}));
}

}  // namespace
}  // namespace headrace
