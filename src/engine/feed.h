// SPDX-License-Identifier: Apache-2.0
//
// Feed: what the engine is told to deliver, step by step.  The loader makes one
// from a plan; the engine knows nothing of orders, ranks or epochs.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/batch.h"

namespace headrace {

// One sample to deliver.
struct Task {
  uint32_t source = 0;
  uint64_t sample = 0;
  uint64_t epoch = 0;     // of the source: names the sample's draws
  uint64_t position = 0;  // the feed's own: where in the order this stands
  bool valid = true;      // false: padding
  uint64_t repeat = 0;    // of a sample that comes several times an epoch: draws of its own
};

// One batch to deliver.
struct FeedStep {
  uint64_t epoch = 0;  // budgets of bad samples are an epoch's
  std::vector<Task> tasks;
  std::vector<int64_t> groups;  // see Batch::groups; empty: every task stands alone
  Position after;
};

// The engine calls one method at a time, from any thread.
class Feed {
 public:
  virtual ~Feed() = default;
  // The next step in plan order; false at the end of the data.
  virtual Result<bool> next(FeedStep& out) = 0;
  // The sample that stands in for a bad one: `task` as it was first planned, `attempt`
  // from 1; false when no other is left.
  virtual bool substitute(const Task& task, uint64_t attempt, Task& out) = 0;
};

}  // namespace headrace
