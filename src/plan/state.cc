// SPDX-License-Identifier: Apache-2.0
#include "plan/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <span>
#include <string_view>

namespace headrace {
namespace {

constexpr uint64_t kMaxPool = uint64_t{1} << 63;

std::string_view name_of(OrderMode mode) {
  switch (mode) {
    case OrderMode::kNone:
      return "False";
    case OrderMode::kGlobal:
      return "\"global\"";
    case OrderMode::kPool:
      return "\"pool\"";
  }
  return "unknown";
}

Status damaged(std::string_view what) {
  return invalid(fmt::format("the state is damaged: {}", what));
}

Status check_shape(const PlanState& s) {
  if (s.mode > OrderMode::kPool) return damaged("no such shuffle mode");
  if (!std::has_single_bit(s.lanes) || s.lanes > kMaxLanes) {
    return damaged(fmt::format("{} lanes, which is no power of two up to {}", s.lanes, kMaxLanes));
  }
  if (s.mode != OrderMode::kPool && s.lanes != 1) return damaged("lanes without pools");
  for (const uint64_t pool : s.pools) {
    if (pool < 1 || pool > kMaxPool) return damaged(fmt::format("a pool of {} samples", pool));
  }
  if (s.reassign_every < 1) return damaged("reassign_every is 0");
  return {};
}

Status check_mixture(const PlanState& s) {
  if (s.mixture.has_value() != (s.epoch_draws > 0)) {
    return damaged("a mixture needs the length of its epochs");
  }
  if (!s.mixture && s.pools.size() > 1) return damaged("several sources without weights");
  if (s.mixture && s.mixture->offsets.size() != s.pools.size()) {
    return damaged(
        fmt::format("{} offsets for {} sources", s.mixture->offsets.size(), s.pools.size()));
  }
  return {};
}

// Weights as shares, in per cent: the integers say nothing to a reader.
std::string shares(const std::optional<MixtureState>& mixture) {
  if (!mixture || mixture->schedule.empty()) return "none";
  std::vector<std::string> texts;
  for (const uint64_t w : mixture->schedule.back().weights) {
    texts.push_back(fmt::format("{:.4g} %", static_cast<double>(w) * 100 * 0x1p-32));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void add(Hasher& hasher, std::span<const uint64_t> values) {
  hasher.add(values.size());
  for (const uint64_t v : values) hasher.add(v);
}

}  // namespace

Status check(const PlanState& loaded, const PlanState& here) {
  if (loaded.plan_version < kPlanVersion || loaded.plan_version > kRegroupedPlanVersion) {
    return unsupported(fmt::format("the state is of plan version {}; this build knows {} to {}",
                                   loaded.plan_version, kPlanVersion, kRegroupedPlanVersion));
  }
  if (loaded.fingerprint != here.fingerprint) {
    return invalid(fmt::format(
        "the state belongs to other data: its fingerprint is {}, that of the data here is {}",
        loaded.fingerprint, here.fingerprint));
  }
  if (loaded.plan_version != here.plan_version) {
    return invalid(fmt::format("the state is damaged: plan version {} for data of version {}",
                               loaded.plan_version, here.plan_version));
  }
  if (loaded.pools.size() != here.pools.size()) {
    return invalid(fmt::format("the state is of {} sources, here are {}", loaded.pools.size(),
                               here.pools.size()));
  }
  HEADRACE_TRY(check_shape(loaded));
  return check_mixture(loaded);
}

std::vector<std::string> differences(const PlanState& loaded, const PlanState& asked) {
  std::vector<std::string> out;
  const auto compare = [&out](std::string_view what, const auto& theirs, const auto& ours) {
    if (theirs == ours) return;
    out.push_back(fmt::format("{} is {} in the state, {} in the arguments", what, theirs, ours));
  };
  compare("seed", loaded.seed, asked.seed);
  compare("shuffle", name_of(loaded.mode), name_of(asked.mode));
  compare("the number of lanes (window)", loaded.lanes, asked.lanes);
  compare("the pool size", fmt::format("{}", fmt::join(loaded.pools, ", ")),
          fmt::format("{}", fmt::join(asked.pools, ", ")));
  const auto is_anew = [](const PlanState& s) { return s.plan_version == kRegroupedPlanVersion; };
  compare("that samples are grouped anew each epoch", is_anew(loaded), is_anew(asked));
  compare("reassign_every", loaded.reassign_every, asked.reassign_every);
  compare("the mixture", shares(loaded.mixture), shares(asked.mixture));
  compare("the epoch of the mixture, in draws,", loaded.epoch_draws, asked.epoch_draws);
  return out;
}

Hash128 plan_id(const PlanState& state) {
  Hasher hasher;
  hasher.add(state.plan_version).add(state.fingerprint).add(state.seed);
  hasher.add(static_cast<uint64_t>(state.mode)).add(state.lanes).add(state.reassign_every);
  add(hasher, state.pools);
  hasher.add(state.epoch_draws);
  if (state.mixture) {
    add(hasher, state.mixture->offsets);
    for (const WeightChange& change : state.mixture->schedule) {
      hasher.add(change.draw);
      add(hasher, change.weights);
    }
  }
  return hasher.finish();
}

}  // namespace headrace
