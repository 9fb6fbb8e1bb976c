// SPDX-License-Identifier: Apache-2.0
//
// Plan: which samples a rank gets at each step, for one source or a mixture.
// A pure function of (data, seed, epoch, g): no I/O, no threads, nothing to
// rewind.  The loader asks for steps ahead of time and keeps (epoch, g) itself.
//
//   HEADRACE_ASSIGN(auto plan, Plan::make(sources, {.seed = 42, .cut = {.batch = 256}}));
//   while (plan->steps_from(epoch, g) > 0) {
//     HEADRACE_ASSIGN(g, plan->step(epoch, g, slots));
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "plan/arguments.h"
#include "plan/mixture.h"
#include "plan/order.h"
#include "plan/state.h"
#include "plan/steps.h"

namespace headrace {

struct PlanSlot {
  uint32_t source = 0;
  uint64_t sample = 0;    // in natural order
  uint64_t epoch = 0;     // of that source: with the sample it names the random draws
  uint64_t position = 0;  // in that epoch of the source
  bool valid = true;      // false: padding
  uint64_t repeat = 0;    // of a sample that weights give several times an epoch: which time
};

// Where a run stands.
struct PlanPosition {
  uint64_t epoch = 0;
  uint64_t g = 0;
  bool operator==(const PlanPosition&) const = default;
};

// One thread at a time: look-ups fill caches.
class Plan {
 public:
  static Result<std::unique_ptr<Plan>> make(std::vector<PlanSource> sources,
                                            const PlanOptions& options);
  // Goes on from a state: what it says about the order wins over the options
  // (see differences()); rank, batch and tail are the options'.
  static Result<std::unique_ptr<Plan>> resume(std::vector<PlanSource> sources,
                                              const PlanOptions& options, const PlanState& state);

  // Positions: samples, groups of them, or draws of a mixture.  Of groups that are made anew each
  // epoch has its own number, and asking for it makes them; all else has one for all epochs.
  uint64_t epoch_length(uint64_t epoch = 0) const;
  bool is_regrouped() const { return identity_.plan_version == kRegroupedPlanVersion; }
  uint64_t steps_in_epoch(uint64_t epoch = 0) const { return steps_from(epoch, 0); }
  uint64_t steps_from(uint64_t epoch, uint64_t g) const {
    return headrace::steps_from(g, epoch_length(epoch), cut_);
  }
  // (epoch, g), or the start of the next epoch when this one has no further step.
  PlanPosition this_or_next_epoch(PlanPosition at) const;

  // This rank's slots of the step at (epoch, g), in order; returns the g after it.
  // steps_from(epoch, g) must not be 0.
  Result<uint64_t> step(uint64_t epoch, uint64_t g, std::vector<PlanSlot>& out);
  // The samples of a slot that is a group.
  std::span<const uint32_t> members(const PlanSlot& slot);
  // What stands in for a bad sample: the attempt-th next of its pool, attempt from 1
  // on, in the same slot; nothing when the pool is exhausted.
  std::optional<PlanSlot> substitute(const PlanSlot& bad, uint64_t attempt);

  // Mixtures: other weights from a draw on (epoch · epoch_length + g).  Every rank
  // must say so with the same draw, one that none has reached yet.
  Status set_weights(const std::vector<double>& weights, uint64_t draw);

  PlanState state(PlanPosition at) const;
  Hash128 plan_id() const { return headrace::plan_id(state({})); }
  const std::vector<std::string>& differences() const { return differences_; }
  uint64_t global_batch() const { return cut_.batch; }
  const std::vector<PlanSource>& sources() const { return sources_; }
  size_t cache_bytes() const;

 private:
  struct Epoch {
    uint64_t number;
    EpochGroups::Made groups;  // empty: samples are delivered alone
    std::unique_ptr<Order> order;
    uint64_t start = 0;  // of its weights
  };
  Plan(std::vector<PlanSource> sources, const StepCut& cut, PlanState identity);
  static Result<std::unique_ptr<Plan>> from(std::vector<PlanSource> sources, const StepCut& cut,
                                            const PlanState& state);

  Status check_weights(const std::vector<uint64_t>& weights) const;
  Status check_position(uint64_t epoch, uint64_t g) const;
  OrderName name_of(uint32_t source, uint64_t epoch) const;
  EpochGroups::Made groups_of(uint32_t source, uint64_t epoch) const;
  Epoch& epoch_of(uint32_t source, uint64_t epoch);
  // The sample that a place of the order is: itself, or one that weights draw.
  void set_sample(const Epoch& epoch, uint64_t place, PlanSlot& slot) const;
  void place(uint64_t epoch, uint64_t g, uint64_t n, const StepPart& part);
  void place_draws(Mixture& mixture, uint64_t draw, uint64_t n, const StepPart& part);
  EpochPlace draw_at(Mixture& mixture, uint64_t draw) const;

  std::vector<PlanSource> sources_;
  StepCut cut_;
  PlanState identity_;  // without its mixture, which lives in mixture_
  std::optional<Mixture> mixture_;
  uint64_t length_ = 0;
  std::vector<std::string> differences_;
  std::vector<std::vector<Epoch>> orders_;  // of each source, latest used first
  LaneWalk walk_;
  std::vector<StepRange> ranges_;  // scratch of a step
  std::vector<EpochPlace> places_;
  std::vector<uint64_t> from_;
};

}  // namespace headrace
