// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace headrace {
namespace {

using U128 = unsigned __int128;

// 2: what was fetched ahead into the next epoch, and the rest of this one.
constexpr size_t kKeptEpochs = 2;
constexpr uint64_t kMaxDraw = uint64_t{1} << 62;

}  // namespace

Plan::Plan(std::vector<PlanSource> sources, const StepCut& cut, PlanState identity)
    : sources_(std::move(sources)),
      cut_(cut),
      identity_(std::move(identity)),
      length_(identity_.mixture ? identity_.epoch_draws : sources_[0].tree->samples()),
      orders_(sources_.size()) {}

Result<std::unique_ptr<Plan>> Plan::from(std::vector<PlanSource> sources, const StepCut& cut,
                                         const PlanState& state) {
  std::unique_ptr<Plan> plan(new Plan(std::move(sources), cut, state));
  if (state.mixture) {
    for (const WeightChange& change : state.mixture->schedule) {
      HEADRACE_TRY(plan->check_weights(change.weights));
    }
    HEADRACE_ASSIGN(plan->mixture_,
                    Mixture::restore(Key(state.seed).with("mixture"), *state.mixture));
    plan->identity_.mixture.reset();
  }
  return plan;
}

Result<std::unique_ptr<Plan>> Plan::make(std::vector<PlanSource> sources,
                                         const PlanOptions& options) {
  HEADRACE_ASSIGN(const PlanState state, initial_state(sources, options));
  return from(std::move(sources), options.cut, state);
}

Result<std::unique_ptr<Plan>> Plan::resume(std::vector<PlanSource> sources,
                                           const PlanOptions& options, const PlanState& state) {
  HEADRACE_ASSIGN(const PlanState asked, initial_state(sources, options));
  PlanState here = asked;
  // Groups can be made either way.
  const bool can_regroup = sources.size() == 1 && sources[0].groups != nullptr;
  if (can_regroup && state.plan_version >= kWeightedPlanVersion)
    here.plan_version = state.plan_version;
  HEADRACE_TRY(check(state, here));
  HEADRACE_ASSIGN(std::unique_ptr<Plan> plan, from(std::move(sources), options.cut, state));
  // The start of an epoch is in all of them: none need be grouped to know it.
  const uint64_t length = state.g == 0 ? 1 : plan->epoch_length(state.epoch);
  if (state.g > length) {
    return invalid(
        fmt::format("the state is damaged: position {} of an epoch of {}", state.g, length));
  }
  if (state.g < length) HEADRACE_TRY(plan->check_position(state.epoch, state.g));
  plan->differences_ = headrace::differences(state, asked);
  return plan;
}

Status Plan::check_weights(const std::vector<uint64_t>& weights) const {
  if (weights.size() != sources_.size()) {
    return invalid(fmt::format("{} weights for {} sources", weights.size(), sources_.size()));
  }
  for (size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] > 0 && sources_[k].tree->samples() == 0) {
      return invalid(fmt::format("source '{}' has a weight but no samples", sources_[k].name));
    }
  }
  return {};
}

Status Plan::check_position(uint64_t epoch, uint64_t g) const {
  if (!mixture_) return {};
  const U128 draw = static_cast<U128>(epoch) * length_ + g;
  if (draw >= kMaxDraw) return invalid(fmt::format("epoch {} is beyond draw 2^62", epoch));
  if (draw >= mixture_->first_draw()) return {};
  return invalid(
      fmt::format("epoch {}, position {} lies before draw {}, where the state's history begins",
                  epoch, g, mixture_->first_draw()));
}

uint64_t Plan::epoch_length(uint64_t epoch) const {
  return is_regrouped() ? groups_of(0, epoch).tree->samples() : length_;
}

PlanPosition Plan::this_or_next_epoch(PlanPosition at) const {
  if (is_regrouped() && at.g == 0) return at;
  return steps_from(at.epoch, at.g) > 0 ? at : PlanPosition{at.epoch + 1, 0};
}

OrderName Plan::name_of(uint32_t source, uint64_t epoch) const {
  return {.seed = identity_.seed,
          .source = sources_.size() > 1 ? std::string_view(sources_[source].name) : "",
          .epoch = epoch,
          .reassign_every = identity_.reassign_every};
}

EpochGroups::Made Plan::groups_of(uint32_t source, uint64_t epoch) const {
  EpochGroups& groups = *sources_[source].groups;
  return is_regrouped() ? groups.of(name_of(source, epoch), identity_.mode) : groups.as_they_lie();
}

Plan::Epoch& Plan::epoch_of(uint32_t source, uint64_t epoch) {
  std::vector<Epoch>& kept = orders_[source];
  if (!kept.empty() && kept.front().number == epoch) return kept.front();
  auto found =
      std::find_if(kept.begin(), kept.end(), [epoch](const Epoch& e) { return e.number == epoch; });
  if (found == kept.end()) {
    if (kept.size() == kKeptEpochs) kept.pop_back();
    for (const Epoch& past : kept) past.order->forget_nodes();
    const OrderName name = name_of(source, epoch);
    const OrderShape shape{identity_.mode, identity_.lanes, identity_.pools[source]};
    const SampleWeights* const weights = sources_[source].weights.get();
    EpochGroups::Made groups;
    if (sources_[source].groups != nullptr) groups = groups_of(source, epoch);
    const BlockTree& tree = groups.tree ? *groups.tree : *sources_[source].tree;
    kept.push_back({epoch, std::move(groups), std::make_unique<Order>(tree, name, shape),
                    weights == nullptr ? 0 : weights->start(name.seed, name.source, epoch)});
    found = kept.end() - 1;
  }
  std::rotate(kept.begin(), found, found + 1);
  return kept.front();
}

void Plan::set_sample(const Epoch& epoch, uint64_t place, PlanSlot& slot) const {
  const SampleWeights* const weights = sources_[slot.source].weights.get();
  if (weights == nullptr) {
    slot.sample = place;
    return;
  }
  const SampleWeights::Draw draw = weights->at(epoch.start, place);
  slot.sample = draw.sample;
  slot.repeat = draw.repeat;
}

std::span<const uint32_t> Plan::members(const PlanSlot& slot) {
  return epoch_of(slot.source, slot.epoch).groups.groups->members(slot.sample);
}

EpochPlace Plan::draw_at(Mixture& mixture, uint64_t draw) const {
  const MixtureDraw d = mixture.at(draw);
  const uint64_t samples = sources_[d.source].tree->samples();
  return {d.source, d.position / samples, d.position % samples};
}

// With one lane there is nothing to stay with, and sorting by source would give a
// rank one source only: the draws stay as they come.
void Plan::place_draws(Mixture& mixture, uint64_t draw, uint64_t n, const StepPart& part) {
  if (identity_.lanes == 1) {
    for (uint64_t i = part.first; i < part.last; ++i) places_.push_back(draw_at(mixture, draw + i));
    return;
  }
  const auto before = mixture.counts(draw);
  from_.assign(before.begin(), before.end());
  const auto after = mixture.counts(draw + n);
  ranges_.clear();
  for (uint32_t k = 0; k < sources_.size(); ++k) {
    append_ranges(k, from_[k], after[k], sources_[k].tree->samples(), ranges_);
  }
  walk_.take(ranges_, identity_.lanes, part.first, part.last, places_);
}

void Plan::place(uint64_t epoch, uint64_t g, uint64_t n, const StepPart& part) {
  places_.clear();
  if (mixture_) {
    // The sequence is endless: pads are the draws that follow, which come again as valid ones.
    const uint64_t draw = epoch * length_ + g;
    place_draws(*mixture_, draw, n, part);
    for (uint64_t i = part.pad_first; i < part.pad_last; ++i)
      places_.push_back(draw_at(*mixture_, draw + n + i));
    return;
  }
  ranges_.assign(1, {.epoch = epoch, .begin = g, .end = g + n});
  walk_.take(ranges_, identity_.lanes, part.first, part.last, places_);
  for (uint64_t i = part.pad_first; i < part.pad_last; ++i)
    places_.push_back({0, epoch, i % epoch_length(epoch)});
}

Result<uint64_t> Plan::step(uint64_t epoch, uint64_t g, std::vector<PlanSlot>& out) {
  const uint64_t length = epoch_length(epoch);
  if (headrace::steps_from(g, length, cut_) == 0) {
    return invalid(fmt::format("epoch {} has no step at position {} of {}", epoch, g, length));
  }
  HEADRACE_TRY(check_position(epoch, g));
  const uint64_t n = std::min(cut_.batch, length - g);
  const StepPart part = part_of(n, cut_);
  place(epoch, g, n, part);
  out.clear();
  for (const EpochPlace& at : places_) {
    Epoch& kept = epoch_of(at.source, at.epoch);
    const bool valid = out.size() < part.last - part.first;
    PlanSlot& slot = out.emplace_back();
    slot = {at.source, 0, at.epoch, at.position, valid};
    set_sample(kept, kept.order->at(at.position), slot);
    if (kept.order->damaged()) {
      return corrupt(fmt::format("the index of source '{}' contradicts itself: build it again",
                                 sources_[at.source].name));
    }
  }
  return g + n;
}

std::optional<PlanSlot> Plan::substitute(const PlanSlot& bad, uint64_t attempt) {
  Epoch& kept = epoch_of(bad.source, bad.epoch);
  const auto place = kept.order->substitute(bad.position, attempt);
  if (!place) return std::nullopt;
  PlanSlot slot = bad;
  set_sample(kept, *place, slot);
  return slot;
}

Status Plan::set_weights(const std::vector<double>& weights, uint64_t draw) {
  if (!mixture_) return invalid("weights are for mixtures: there is one source");
  HEADRACE_ASSIGN(std::vector<uint64_t> integers, integer_weights(weights));
  HEADRACE_TRY(check_weights(integers));
  return mixture_->set_weights(std::move(integers), draw);
}

PlanState Plan::state(PlanPosition at) const {
  PlanState state = identity_;
  state.epoch = at.epoch;
  state.g = at.g;
  if (mixture_) state.mixture = mixture_->fold(at.epoch * length_ + at.g);
  return state;
}

size_t Plan::cache_bytes() const {
  size_t bytes = 0;
  for (const auto& kept : orders_) {
    for (const Epoch& epoch : kept) bytes += epoch.order->cache_bytes();
  }
  return bytes;
}

}  // namespace headrace
