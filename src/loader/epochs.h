// SPDX-License-Identifier: Apache-2.0
//
// Epochs: where the consumer stands, and which epoch comes next.  Python and C++ share it.
//
//   at (n, 0) ── begin(n) ──► in epoch n ── received(its last batch) ──► at (n + 1, 0)
//      ▲                        │   ▲
//      │                        │   └── begin(m): the unfinished epoch is ended, m begins
//   load(state) ◄───────────────┘
//   at (n, g): until something begins, only epoch n may, and it begins at g
//
// It counts what the consumer received, not what was read ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "loader/loader.h"

namespace headrace {

// begin(), load() and set_weights() by one consumer at a time; the rest from any thread.
class Epochs {
 public:
  explicit Epochs(Loader& loader) : loader_(loader) {}  // which outlives it

  // The epoch that comes next: the one set_epoch() named, the one a loaded state stands in, the
  // one that was begun and gave no batch yet, or one more.
  uint64_t next() const HEADRACE_EXCLUDES(mu_);
  Status set_epoch(uint64_t n) HEADRACE_EXCLUDES(mu_);
  // Steps of the epoch that is under way, or comes next.
  uint64_t steps() const HEADRACE_EXCLUDES(mu_);

  struct Begun {
    uint64_t generation = 0;  // names this run through an epoch: see is_current()
    uint64_t steps = 0;       // left in it
  };
  // Starts epoch n, from its start or from where a loaded state stands.  `until`: the caller is
  // going through all epochs before that one, so the next is prepared while the end of this one
  // is consumed.
  Result<Begun> begin(uint64_t n, std::optional<uint64_t> until) HEADRACE_EXCLUDES(mu_);
  // False once another epoch was begun or a state was loaded.
  bool is_current(uint64_t generation) const HEADRACE_EXCLUDES(mu_);
  // The consumer has received the batch after which this is the position.
  void received(const Position& after) HEADRACE_EXCLUDES(mu_);

  PlanPosition position() const HEADRACE_EXCLUDES(mu_);
  PlanState state() const { return loader_.state(position()); }
  Status load(const PlanState& state) HEADRACE_EXCLUDES(mu_);

  // Of a blend: other weights from step `at_step` of the current epoch on.
  Status set_weights(const std::vector<double>& weights, uint64_t at_step) HEADRACE_EXCLUDES(mu_);

 private:
  Status check(uint64_t n) const HEADRACE_REQUIRES(mu_);
  PlanPosition start_of(uint64_t n) const HEADRACE_REQUIRES(mu_);

  Loader& loader_;
  mutable Mutex mu_;                                 // not held while the loader starts or stops
  PlanPosition position_ HEADRACE_GUARDED_BY(mu_);   // what the consumer has received
  bool is_midway_ HEADRACE_GUARDED_BY(mu_) = false;  // some of the epoch's batches, not all
  bool is_loaded_ HEADRACE_GUARDED_BY(mu_) = false;  // a state, and nothing begun since
  std::optional<uint64_t> asked_ HEADRACE_GUARDED_BY(mu_);     // by set_epoch()
  std::optional<uint64_t> finished_ HEADRACE_GUARDED_BY(mu_);  // consumed to its end last
  uint64_t generation_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
