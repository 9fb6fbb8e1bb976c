// SPDX-License-Identifier: Apache-2.0
#include "plan/arguments.h"

#include <fmt/format.h>

#include <utility>

#include "base/hash.h"

namespace headrace {
namespace {

Status check_names(const std::vector<PlanSource>& sources) {
  if (sources.empty()) return invalid("a plan needs at least one source");
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].tree == nullptr) return internal("a source without its block tree");
    for (size_t j = 0; j < i; ++j) {
      if (sources[i].name == sources[j].name) {
        return invalid(fmt::format("two sources are named '{}'", sources[i].name));
      }
    }
  }
  return {};
}

std::string fingerprint_of(const std::vector<PlanSource>& sources) {
  if (sources.size() == 1) return sources[0].fingerprint;
  Hasher hasher;
  for (const PlanSource& s : sources) hasher.add(s.name).add(s.fingerprint);
  return hasher.finish().hex();
}

// Groups are made anew of one source that is shuffled: a mixture counts its sources' epochs by
// their length, so that it must not change.
uint32_t plan_version_of(const std::vector<PlanSource>& sources, OrderMode mode) {
  if (sources.size() == 1 && sources[0].groups && mode != OrderMode::kNone &&
      sources[0].groups->grouping().rule().anew)
    return kRegroupedPlanVersion;
  for (const PlanSource& s : sources)
    if (s.weights != nullptr || s.groups != nullptr) return kWeightedPlanVersion;
  return kPlanVersion;
}

// Fills the mixture's part of a state from the arguments.
Status set_mixture(const std::vector<PlanSource>& sources, const PlanOptions& options,
                   PlanState& state) {
  if (options.weights.empty()) {
    if (sources.size() > 1) return invalid("several sources need weights");
    if (options.epoch_draws > 0) return invalid("epoch_draws is for mixtures");
    return {};
  }
  if (options.weights.size() != sources.size()) {
    return invalid(
        fmt::format("{} weights for {} sources", options.weights.size(), sources.size()));
  }
  HEADRACE_ASSIGN(std::vector<uint64_t> weights, integer_weights(options.weights));
  state.epoch_draws = options.epoch_draws;
  for (size_t k = 0; k < sources.size() && options.epoch_draws == 0; ++k) {
    if (weights[k] > 0) state.epoch_draws += sources[k].tree->samples();
  }
  state.mixture = {std::vector<uint64_t>(sources.size()), {{0, std::move(weights)}}};
  return {};
}

}  // namespace

Result<PlanState> initial_state(const std::vector<PlanSource>& sources,
                                const PlanOptions& options) {
  HEADRACE_TRY(check_names(sources));
  HEADRACE_TRY(validate(options.cut));
  if (options.reassign_every < 1) return invalid("reassign_every must be at least 1 epoch");
  PlanState state{.fingerprint = fingerprint_of(sources), .seed = options.seed};
  state.reassign_every = options.reassign_every;
  std::vector<SourceSize> sizes;
  sizes.reserve(sources.size());
  for (const PlanSource& s : sources) {
    sizes.push_back({s.tree->samples(), s.tree->filled_blocks(), s.bytes, s.shared});
  }
  for (const OrderShape& shape : choose_shapes(sizes, options.shuffle, options.window_bytes)) {
    state.mode = shape.mode;
    state.lanes = shape.lanes;
    state.pools.push_back(shape.pool);
  }
  state.plan_version = plan_version_of(sources, state.mode);
  HEADRACE_TRY(set_mixture(sources, options, state));
  return state;
}

}  // namespace headrace
