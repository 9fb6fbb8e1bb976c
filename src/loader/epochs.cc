// SPDX-License-Identifier: Apache-2.0
#include "loader/epochs.h"

#include <fmt/format.h>

namespace headrace {
namespace {

constexpr uint64_t kForever = uint64_t{1} << 62;

}  // namespace

uint64_t Epochs::next() const {
  MutexLock lock(mu_);
  if (asked_) return *asked_;
  return loader_.this_or_next_epoch(position_).epoch + (is_midway_ ? 1 : 0);
}

uint64_t Epochs::steps() const {
  uint64_t epoch = 0;
  {
    MutexLock lock(mu_);
    epoch = asked_ ? *asked_ : loader_.this_or_next_epoch(position_).epoch;
  }
  return loader_.steps_in_epoch(epoch);
}

Status Epochs::check(uint64_t n) const {
  if (n >= kForever) return invalid(fmt::format("epoch {} is beyond 2^62", n));
  const uint64_t stands = loader_.this_or_next_epoch(position_).epoch;
  if (!is_loaded_ || n == stands) return {};
  return invalid(
      fmt::format("the loaded state stands in epoch {0}, not {1}: go on with loader.epoch({0}) or "
                  "`for epoch, batches in loader.epochs(total)`, or make a new Loader to start "
                  "epoch {1} afresh",
                  stands, n));
}

Status Epochs::set_epoch(uint64_t n) {
  MutexLock lock(mu_);
  HEADRACE_TRY(check(n));
  asked_ = n;
  return {};
}

PlanPosition Epochs::start_of(uint64_t n) const {
  const PlanPosition stands = loader_.this_or_next_epoch(position_);
  return is_midway_ || stands.epoch != n ? PlanPosition{n, 0} : stands;
}

Result<Epochs::Begun> Epochs::begin(uint64_t n, std::optional<uint64_t> until) {
  PlanPosition start;
  bool run_on = false;
  bool continues = false;
  {
    MutexLock lock(mu_);
    HEADRACE_TRY(check(n));
    start = start_of(n);
    // Ahead into the next epoch where the caller is going there: no stall in between.
    run_on = until.has_value() || (n > 0 && finished_ == n - 1);
    continues = !is_loaded_ && start.g == 0 && loader_.continues_with(n);
  }
  if (start.g == 0) HEADRACE_TRY(loader_.check_epoch(n));
  if (!continues) HEADRACE_TRY(loader_.begin(start, run_on, until.value_or(kForever)));
  MutexLock lock(mu_);
  position_ = start;
  is_loaded_ = is_midway_ = false;
  asked_.reset();
  finished_.reset();
  return Begun{++generation_, loader_.steps_from(start)};
}

bool Epochs::is_current(uint64_t generation) const {
  MutexLock lock(mu_);
  return generation_ == generation;
}

void Epochs::received(const Position& after) {
  MutexLock lock(mu_);
  position_ = {after.epoch, after.g};
  is_midway_ = !after.last;
  if (after.last) finished_ = after.epoch - 1;
}

PlanPosition Epochs::position() const {
  MutexLock lock(mu_);
  return position_;
}

Status Epochs::load(const PlanState& state) {
  HEADRACE_TRY(loader_.load(state));
  MutexLock lock(mu_);
  position_ = {state.epoch, state.g};
  is_loaded_ = true;
  is_midway_ = false;
  asked_.reset();
  finished_.reset();
  ++generation_;
  return {};
}

Status Epochs::set_weights(const std::vector<double>& weights, uint64_t at_step) {
  const PlanPosition at = position();
  const uint64_t batch = loader_.global_batch();
  if (at_step >= kForever / batch) return invalid("weights cannot change after draw 2^62");
  if (at_step * batch < at.g)
    return invalid(fmt::format("step {} is already past: the loader stands at step {}", at_step,
                               at.g / batch));
  return loader_.set_weights(weights, {at.epoch, at_step * batch});
}

}  // namespace headrace
