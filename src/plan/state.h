// SPDX-License-Identifier: Apache-2.0
//
// PlanState: the few numbers from which a run goes on, on any other number of ranks,
// batch size or threads.  Plain fields: Python makes JSON of them.
//
// It has two parts: what fixes the order (the identity) and where the run stands
// in it.  A loaded state brings its own identity, which wins over the arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "plan/mixture.h"
#include "plan/shape.h"

namespace headrace {

// Of the arithmetic: permutations, keys, tree, lanes, mixing blocks.
inline constexpr uint32_t kPlanVersion = 1;
// And weights of samples (sample_weights.h) or groups of them (sample_groups.h): where a source has
// them.
inline constexpr uint32_t kWeightedPlanVersion = 2;
// And groups that are made anew each epoch (epoch_groups.h): an epoch's length is its own.
inline constexpr uint32_t kRegroupedPlanVersion = 3;

struct PlanState {
  uint32_t plan_version = kPlanVersion;
  std::string fingerprint;  // of the data: names, sizes, counts
  uint64_t seed = 0;
  OrderMode mode = OrderMode::kNone;
  uint32_t lanes = 1;
  std::vector<uint64_t> pools;  // one a source
  uint64_t reassign_every = 1;
  std::optional<MixtureState> mixture;
  uint64_t epoch_draws = 0;  // length of an epoch of a mixture

  uint64_t epoch = 0;
  uint64_t g = 0;  // positions of the epoch that were consumed

  bool operator==(const PlanState&) const = default;
};

// May a run over the data of `here` go on from `loaded`?  Refuses another plan
// version (but groups that were made once for all, or anew: the state says which), other data
// (naming both fingerprints), and numbers no plan could have written: a state comes from outside.
Status check(const PlanState& loaded, const PlanState& here);

// Where the arguments differ from the state that overrides them, one line each:
// "seed is 7 in the state, 42 in the arguments".
std::vector<std::string> differences(const PlanState& loaded, const PlanState& asked);

// A hash of all that fixes the order; not of where a run stands in it.
Hash128 plan_id(const PlanState& state);

}  // namespace headrace
