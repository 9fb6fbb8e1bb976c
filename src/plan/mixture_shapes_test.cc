// SPDX-License-Identifier: Apache-2.0
//
// The promises of the plan over random mixtures: weights that change at arbitrary
// draws, sources shorter than a step, resumes onto other cuts with folded history.
// Each step is compared with reference.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/plan.h"
#include "plan/random_shapes.h"
#include "plan/reference.h"
#include "plan/test_support.h"

namespace headrace {
namespace {

using Schedule = std::vector<std::pair<uint64_t, std::vector<double>>>;

struct Blend {
  std::vector<reference::Shape> shapes;
  std::vector<PlanSource> sources;
  Schedule schedule;
  uint64_t epoch_draws = 0;
  PlanState state;  // with the first weights
};

std::vector<double> random_weights(Rng& rng, const Blend& blend) {
  std::vector<double> weights;
  for (const PlanSource& s : blend.sources) {
    const bool drawn = s.tree->samples() > 0 && rng.below(5) > 0;
    weights.push_back(drawn ? 0.02 + rng.uniform() : 0);
  }
  weights[0] += 0.1;  // source 0 has samples
  return weights;
}

Blend random_blend(Rng& rng) {
  Blend b;
  const OrderShape order = random_order(rng);
  const uint64_t seed = rng.next();
  const uint64_t sources = 1 + rng.below(4);
  for (uint64_t k = 0; k < sources; ++k) {
    reference::Shape shape = random_shape(rng);
    if (k == 0) shape.sizes.push_back(1);
    shape.source = sources > 1 ? std::string(1, static_cast<char>('a' + k)) : "";
    shape.seed = seed;
    shape.reassign_every = 2;
    shape.order = order;
    if (order.mode == OrderMode::kPool) shape.order.pool = 1 + rng.below(25);
    b.sources.push_back(make_source(shape.sizes, shape.source, shape.fan_out));
    b.state.pools.push_back(shape.order.pool);
    b.shapes.push_back(std::move(shape));
  }
  b.epoch_draws = 1 + rng.below(120);
  for (uint64_t draw = 0; draw < 300; draw += 1 + rng.below(250)) {
    b.schedule.emplace_back(draw, random_weights(rng, b));
  }
  b.state.mode = order.mode;
  b.state.lanes = order.lanes;
  b.state.seed = seed;
  b.state.reassign_every = 2;
  return b;
}

// What every draw is, by the reference.
class Expected {
 public:
  Expected(const Blend& blend, uint64_t draws) : shapes_(blend.shapes) {
    std::vector<std::pair<uint64_t, std::vector<uint64_t>>> schedule;
    for (const auto& [draw, weights] : blend.schedule) {
      schedule.emplace_back(draw, integer_weights(weights).value());
    }
    std::vector<uint64_t> next(shapes_.size());
    for (const uint32_t k :
         reference::mixed(Key(blend.state.seed).with("mixture"), schedule, draws)) {
      draws_.push_back({k, next[k]++});
    }
  }

  // The slots of all ranks for the draws [from, to), without their samples' validity.
  std::vector<PlanSlot> sorted(uint64_t from, uint64_t to) {
    std::vector<std::tuple<uint64_t, uint32_t, uint64_t>> keys;
    for (uint64_t d = from; d < to; ++d) {
      const auto& [source, position] = draws_[d];
      const uint64_t lanes = shapes_[source].order.lanes;
      const uint64_t place = position % shapes_[source].samples();
      keys.emplace_back(reference::reversed(place % lanes, lanes), source, position);
    }
    if (shapes_[0].order.lanes > 1) std::sort(keys.begin(), keys.end());
    std::vector<PlanSlot> out;
    out.reserve(keys.size());
    for (const auto& [lane, source, position] : keys) out.push_back(slot(source, position));
    return out;
  }

  PlanSlot draw(uint64_t d) { return slot(draws_[d].source, draws_[d].position); }

 private:
  PlanSlot slot(uint32_t source, uint64_t position) {
    const uint64_t n = shapes_[source].samples();
    const uint64_t epoch = position / n;
    auto& sequence = sequences_[{source, epoch}];
    if (sequence.empty()) {
      shapes_[source].epoch = epoch;
      sequence = reference::sequence(shapes_[source]).samples;
    }
    return {source, sequence[position % n], epoch, position % n, true};
  }

  std::vector<reference::Shape> shapes_;
  std::vector<MixtureDraw> draws_;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<uint64_t>> sequences_;
};

std::unique_ptr<Plan> make_plan(const Blend& blend, const StepCut& cut, const PlanState* state) {
  const PlanOptions options{
      .cut = cut, .weights = blend.schedule[0].second, .epoch_draws = blend.epoch_draws};
  auto plan = Plan::make(blend.sources, options).value();
  if (state != nullptr) return Plan::resume(blend.sources, options, *state).value();
  // The first state: the shape is the blend's, the rest as the arguments make it.
  PlanState first = plan->state({});
  first.seed = blend.state.seed;
  first.mode = blend.state.mode;
  first.lanes = blend.state.lanes;
  first.pools = blend.state.pools;
  first.reassign_every = blend.state.reassign_every;
  plan = Plan::resume(blend.sources, options, first).value();
  for (size_t i = 1; i < blend.schedule.size(); ++i) {
    EXPECT_TRUE(plan->set_weights(blend.schedule[i].second, blend.schedule[i].first).ok());
  }
  return plan;
}

void expect_equal(const PlanSlot& a, const PlanSlot& b) {
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.sample, b.sample);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.position, b.position);
}

void check_step(Plan& plan, const StepCut& cut, PlanPosition at, uint64_t length,
                Expected& expected) {
  std::vector<PlanSlot> slots;
  EXPECT_TRUE(plan.step(at.epoch, at.g, slots).ok());
  const uint64_t draw = at.epoch * length + at.g;
  const uint64_t n = std::min(cut.batch, length - at.g);
  const std::vector<PlanSlot> all = expected.sorted(draw, draw + n);
  const StepPart part = part_of(n, cut);
  const uint64_t valid = part.last - part.first;
  ASSERT_EQ(slots.size(), valid + part.pad_last - part.pad_first);
  for (uint64_t i = 0; i < slots.size(); ++i) {
    ASSERT_EQ(slots[i].valid, i < valid);
    expect_equal(slots[i], i < valid ? all[part.first + i]
                                     : expected.draw(draw + n + part.pad_first + i - valid));
  }
}

// A run over several epochs that changes its cut, by a folded state, every few steps.
void check_blend(Rng& rng, const Blend& blend) {
  Expected expected(blend, 1200);
  std::optional<PlanState> state;
  PlanPosition at;
  while (at.epoch * blend.epoch_draws + at.g < 500 && at.epoch < 4) {
    StepCut cut = random_cut(rng, random_tail(rng));
    cut.rank = static_cast<uint32_t>(rng.below(cut.world));
    const auto plan = make_plan(blend, cut, state ? &*state : nullptr);
    for (uint64_t k = rng.below(6); k > 0; --k) {
      at = plan->this_or_next_epoch(at);
      if (plan->steps_from(at.epoch, at.g) == 0) break;  // an epoch shorter than the batch, dropped
      check_step(*plan, cut, at, blend.epoch_draws, expected);
      if (::testing::Test::HasFailure()) return;
      at.g += std::min(cut.batch, blend.epoch_draws - at.g);
    }
    at = plan->this_or_next_epoch(at);
    state = plan->state(at);
    ++tally().resumes;
  }
}

TEST(MixtureShapesTest, EveryStepOfEveryRankIsTheReferences) {
  Rng rng{Key(201)};
  for (int i = 0; i < 10000 && !::testing::Test::HasFailure(); ++i, ++tally().shapes) {
    check_blend(rng, random_blend(rng));
  }
}

}  // namespace
}  // namespace headrace
