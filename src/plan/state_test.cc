// SPDX-License-Identifier: Apache-2.0
#include "plan/state.h"

#include <gtest/gtest.h>

#include <functional>

#include "plan/test_support.h"

namespace headrace {
namespace {

std::vector<uint32_t> sizes() {
  return std::vector<uint32_t>(100, 10);
}

PlanState sample_state() {
  return Plan::make({make_source(sizes())}, {.seed = 7, .shuffle = Shuffle::kPool})
      .value()
      ->state({2, 30});
}

PlanState mixture_state() {
  return Plan::make({make_source(sizes(), "a"), make_source(sizes(), "b")},
                    {.seed = 7, .shuffle = Shuffle::kPool, .weights = {3, 1}, .epoch_draws = 500})
      .value()
      ->state({2, 30});
}

TEST(StateTest, OtherDataIsRefusedWithBothFingerprints) {
  PlanSource other = make_source(sizes());
  other.fingerprint = "beef";
  EXPECT_EQ(
      Plan::resume({other}, {}, sample_state()).status().message(),
      "the state belongs to other data: its fingerprint is f00d, that of the data here is beef");
  EXPECT_TRUE(Plan::resume({make_source(sizes(), "moved")}, {}, sample_state()).ok());
}

TEST(StateTest, AnotherPlanVersionIsRefused) {
  PlanState state = sample_state();
  state.plan_version = 4;
  Status s = Plan::resume({make_source(sizes())}, {}, state).status();
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_EQ(s.message(), "the state is of plan version 4; this build knows 1 to 3");
  state.plan_version = 2;  // of data with weights, which these are not
  s = Plan::resume({make_source(sizes())}, {}, state).status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_EQ(s.message(), "the state is damaged: plan version 2 for data of version 1");
}

TEST(StateTest, TheStateWinsAndSaysWhereTheArgumentsDiffer) {
  const PlanOptions options{.seed = 42, .shuffle = Shuffle::kGlobal, .reassign_every = 2};
  const auto plan = Plan::resume({make_source(sizes())}, options, sample_state()).value();
  EXPECT_EQ(plan->differences(),
            (std::vector<std::string>{
                "seed is 7 in the state, 42 in the arguments",
                "shuffle is \"pool\" in the state, \"global\" in the arguments",
                "the number of lanes (window) is 64 in the state, 1 in the arguments",
                "the pool size is 20 in the state, 1 in the arguments",
                "reassign_every is 1 in the state, 2 in the arguments"}));
  EXPECT_EQ(plan->state({2, 30}), sample_state());
  const auto same =
      Plan::resume({make_source(sizes())}, {.seed = 7, .shuffle = Shuffle::kPool}, sample_state());
  EXPECT_TRUE(same.value()->differences().empty());
}

TEST(StateTest, DifferencesOfMixturesAreShares) {
  PlanState asked = mixture_state();
  asked.mixture->schedule[0].weights = {kWeightOne / 2, kWeightOne / 2};
  EXPECT_EQ(differences(mixture_state(), asked),
            (std::vector<std::string>{
                "the mixture is 75 %, 25 % in the state, 50 %, 50 % in the arguments"}));
}

TEST(StateTest, PlanIdCoversAllThatFixesTheOrder) {
  const std::vector<std::function<void(PlanState&)>> edits{
      [](PlanState& s) { s.plan_version = 2; },
      [](PlanState& s) { s.fingerprint += "x"; },
      [](PlanState& s) { ++s.seed; },
      [](PlanState& s) { s.mode = OrderMode::kGlobal; },
      [](PlanState& s) { s.lanes *= 2; },
      [](PlanState& s) { ++s.pools[1]; },
      [](PlanState& s) { ++s.reassign_every; },
      [](PlanState& s) { ++s.epoch_draws; },
      [](PlanState& s) { ++s.mixture->offsets[0]; },
      [](PlanState& s) { ++s.mixture->schedule[0].weights[0]; },
      [](PlanState& s) { ++s.mixture->schedule[0].draw; },
      [](PlanState& s) { s.mixture.reset(); },
  };
  for (const auto& edit : edits) {
    PlanState state = mixture_state();
    edit(state);
    EXPECT_NE(plan_id(state), plan_id(mixture_state()));
  }
  PlanState later = mixture_state();
  later.g += 10;
  EXPECT_EQ(plan_id(later), plan_id(mixture_state()));
}

TEST(StateTest, NumbersNoPlanCouldHaveWrittenAreRefused) {
  const std::vector<std::function<void(PlanState&)>> edits{
      [](PlanState& s) { s.lanes = 0; },
      [](PlanState& s) { s.lanes = 3; },
      [](PlanState& s) { s.lanes = 1u << 17; },
      [](PlanState& s) { s.mode = static_cast<OrderMode>(7); },
      [](PlanState& s) { s.mode = OrderMode::kGlobal; },  // with lanes
      [](PlanState& s) { s.pools[0] = 0; },
      [](PlanState& s) { s.pools[0] = ~uint64_t{0}; },
      [](PlanState& s) { s.pools.clear(); },
      [](PlanState& s) { s.reassign_every = 0; },
      [](PlanState& s) { s.g = 501; },
      [](PlanState& s) { s.epoch = ~uint64_t{0}; },
      [](PlanState& s) { s.epoch_draws = 0; },
      [](PlanState& s) { s.mixture.reset(); },
      [](PlanState& s) {
        s.mixture.reset();
        s.epoch_draws = 0;
      },
      [](PlanState& s) { s.mixture->schedule.clear(); },
      [](PlanState& s) { s.mixture->offsets.pop_back(); },
      [](PlanState& s) { s.mixture->offsets[0] = ~uint64_t{0}; },
      [](PlanState& s) { s.mixture->schedule[0].weights[0] = 0; },
      [](PlanState& s) { s.mixture->schedule[0].weights.pop_back(); },
      [](PlanState& s) { s.mixture->schedule[0].draw = 100000; },  // after the position
  };
  const std::vector<PlanSource> sources{make_source(sizes(), "a"), make_source(sizes(), "b")};
  const PlanOptions options{.weights = {3, 1}};
  ASSERT_TRUE(Plan::resume(sources, options, mixture_state()).ok());
  for (size_t i = 0; i < edits.size(); ++i) {
    PlanState state = mixture_state();
    edits[i](state);
    const auto plan = Plan::resume(sources, options, state);
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument) << i;
  }
}

}  // namespace
}  // namespace headrace
