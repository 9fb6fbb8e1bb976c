// SPDX-License-Identifier: Apache-2.0
//
// The promises of the plan over more than 100,000 random shapes: uneven and empty
// blocks, one huge block, N < L, R > L, fan-outs 2 to 7 and 827, all modes and
// tails.  Each step is compared with reference.h.  Mixtures: mixture_shapes_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/random_shapes.h"
#include "plan/reference.h"
#include "plan/test_support.h"

namespace headrace {
namespace {

// A shape's data, and plans over it for one rank after the other.
class Journey {
 public:
  explicit Journey(const reference::Shape& shape)
      : source_(make_source(shape.sizes, "", shape.fan_out)),
        expected_(reference::sequence(shape)) {
    state_.fingerprint = source_.fingerprint;
    state_.seed = shape.seed;
    state_.mode = shape.order.mode;
    state_.lanes = shape.order.lanes;
    state_.pools = {shape.order.pool};
    state_.reassign_every = shape.reassign_every;
    state_.epoch = shape.epoch;
  }

  uint64_t length() const { return expected_.samples.size(); }
  const reference::Sequence& expected() const { return expected_; }
  void move_to(const PlanState& state) { state_ = state; }
  const PlanState& state() const { return state_; }

  std::vector<std::unique_ptr<Plan>> ranks(StepCut cut) const {
    std::vector<std::unique_ptr<Plan>> plans;
    for (cut.rank = 0; cut.rank < cut.world; ++cut.rank) {
      plans.push_back(Plan::resume({source_}, {.cut = cut}, state_).value());
    }
    return plans;
  }

 private:
  PlanSource source_;
  reference::Sequence expected_;
  PlanState state_;
};

// One rank's slots of a step; `pads` counts those of all ranks so far.
void check_slots(const Journey& run, const std::vector<PlanSlot>& slots,
                 const std::vector<uint64_t>& part, uint64_t& pads) {
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool valid = i < part.size();
    const uint64_t position = valid ? part[i] : pads++ % run.length();
    EXPECT_EQ(slots[i].position, position);
    EXPECT_EQ(slots[i].sample, run.expected().samples[position]);
    EXPECT_EQ(slots[i].valid, valid);
    EXPECT_EQ(slots[i].epoch, run.state().epoch);
  }
}

// Takes one step on all ranks; checks it against the reference; returns the g after it.
uint64_t check_step(const Journey& run, std::vector<std::unique_ptr<Plan>>& ranks,
                    const StepCut& cut, uint64_t g) {
  const uint64_t n = std::min(cut.batch, run.length() - g);
  uint64_t pads = 0;
  for (uint32_t rank = 0; rank < cut.world; ++rank) {
    std::vector<PlanSlot> slots;
    EXPECT_EQ(ranks[rank]->step(run.state().epoch, g, slots).value(), g + n);
    const auto part = reference::part(run.expected(), g, cut.batch, rank, cut.world);
    EXPECT_EQ(slots.size(), cut.tail == Tail::kKeep ? part.size() : cut.batch / cut.world);
    check_slots(run, slots, part, pads);
  }
  EXPECT_EQ(pads, cut.tail == Tail::kPad ? cut.batch - n : 0);
  return g + n;
}

// Steps from the run's state on, at most `limit`.  Returns the state after the last.
PlanState check_steps(const Journey& run, const StepCut& cut, uint64_t limit) {
  auto ranks = run.ranks(cut);
  uint64_t g = run.state().g;
  const uint64_t rest = run.length() - g;
  const uint64_t steps = ranks[0]->steps_from(run.state().epoch, g);
  EXPECT_EQ(steps, cut.tail == Tail::kDrop ? rest / cut.batch : (rest + cut.batch - 1) / cut.batch);
  for (const auto& plan : ranks) EXPECT_EQ(plan->steps_from(run.state().epoch, g), steps);
  uint64_t taken = 0;
  for (; taken < std::min(steps, limit); ++taken) g = check_step(run, ranks, cut, g);
  if (taken == steps) {
    std::vector<PlanSlot> none;
    EXPECT_FALSE(ranks[0]->step(run.state().epoch, g, none).ok());
  }
  const PlanState after = ranks.back()->state({run.state().epoch, g});
  EXPECT_EQ(after, ranks[0]->state({run.state().epoch, g}));
  return after;
}

constexpr uint64_t kAll = ~uint64_t{0};

void check_exactly_once(const reference::Sequence& sequence) {
  std::vector<uint64_t> sorted = sequence.samples;
  std::sort(sorted.begin(), sorted.end());
  for (uint64_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
}

// The reference takes every sample once, and every step of every rank equals the reference's.
TEST(ShapesTest, EverySampleOnceOnAnyCut) {
  Rng rng{Key(101)};
  for (int i = 0; i < 120000 && !::testing::Test::HasFailure(); ++i, ++tally().shapes) {
    const Journey run(random_shape(rng));
    check_exactly_once(run.expected());
    check_steps(run, random_cut(rng, random_tail(rng)), kAll);
  }
}

// Positions are checked against one sequence, so other ranks and batches give exactly the rest.
TEST(ShapesTest, ResumeAtEveryStepOntoAnyOtherCut) {
  Rng rng{Key(102)};
  for (int i = 0; i < 6000 && !::testing::Test::HasFailure(); ++i, ++tally().shapes) {
    Journey run(random_shape(rng));
    const StepCut cut = random_cut(rng, Tail::kKeep);
    while (run.state().g < run.length() && !::testing::Test::HasFailure()) {
      run.move_to(check_steps(run, cut, 1));
      check_steps(run, random_cut(rng, random_tail(rng)), kAll);
      tally().resumes += 2;
    }
  }
}

TEST(ShapesTest, ChainsOfFiveResumes) {
  Rng rng{Key(103)};
  for (int i = 0; i < 10000 && !::testing::Test::HasFailure(); ++i, ++tally().shapes) {
    Journey run(random_shape(rng));
    for (int k = 0; k < 5; ++k, ++tally().resumes) {
      run.move_to(check_steps(run, random_cut(rng, random_tail(rng)), rng.below(4)));
    }
    check_steps(run, random_cut(rng, Tail::kKeep), kAll);
  }
}

// The samples of g's pool from g on, in the order of positions, wrapping.
std::vector<uint64_t> pool_from(const reference::Sequence& sequence, uint64_t g) {
  std::vector<uint64_t> out;
  const uint64_t n = sequence.samples.size();
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t x = (g + i) % n;
    if (sequence.pools[x] == sequence.pools[g]) out.push_back(sequence.samples[x]);
  }
  return out;
}

TEST(ShapesTest, SubstitutesAreTheRestOfThePool) {
  Rng rng{Key(104)};
  for (int i = 0; i < 10000 && !::testing::Test::HasFailure(); ++i, ++tally().shapes) {
    const Journey run(random_shape(rng));
    if (run.length() == 0) continue;
    const auto plan = std::move(run.ranks({.tail = Tail::kKeep})[0]);
    const uint64_t g = rng.below(run.length());
    const std::vector<uint64_t> pool = pool_from(run.expected(), g);
    const PlanSlot bad{0, pool[0], run.state().epoch, g, true};
    for (uint64_t attempt = 1; attempt < pool.size(); ++attempt) {
      const PlanSlot slot = plan->substitute(bad, attempt).value_or(bad);
      EXPECT_EQ(slot.sample, pool[attempt]);
      EXPECT_EQ(slot.position, g);
    }
    EXPECT_FALSE(plan->substitute(bad, pool.size()).has_value());
  }
}

}  // namespace
}  // namespace headrace
