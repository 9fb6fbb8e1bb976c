// SPDX-License-Identifier: Apache-2.0
//
// What a plan is made from: sources, and what the user asks for.  Both come to a
// PlanState at (epoch 0, position 0), which is all the order depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/block_tree.h"
#include "plan/epoch_groups.h"
#include "plan/sample_weights.h"
#include "plan/shape.h"
#include "plan/state.h"
#include "plan/steps.h"

namespace headrace {

struct PlanSource {
  std::string name;  // keys the source's order when several are mixed
  std::string fingerprint;
  std::shared_ptr<const BlockTree> tree;
  uint64_t bytes = 0;
  bool shared = false;  // see SourceSize
  // Of samples that come in proportion to weights; then the tree is of draws.  Null: each once.
  std::shared_ptr<const SampleWeights> weights = nullptr;
  // Of samples that are delivered together; then the tree is of groups, as they lie.  Null: alone.
  std::shared_ptr<EpochGroups> groups = nullptr;
};

struct PlanOptions {
  uint64_t seed = 0;
  Shuffle shuffle = Shuffle::kAuto;
  std::optional<uint64_t> window_bytes = {};
  uint64_t reassign_every = 1;  // epochs that share a block order
  StepCut cut = {};
  std::vector<double> weights = {};  // one a source makes a mixture; needed for several sources
  uint64_t epoch_draws = 0;          // of a mixture; 0: the samples of all sources drawn from
};

// The state at the start of a run, as the arguments alone would have it.
Result<PlanState> initial_state(const std::vector<PlanSource>& sources, const PlanOptions& options);

}  // namespace headrace
