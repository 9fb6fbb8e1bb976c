// SPDX-License-Identifier: Apache-2.0
//
// Chunk: a run of slots of one step on its way: resolved, read, decoded.  About 64 KiB of stored
// bytes (one picture, many token rows): below that, queues cost more than the work they carry.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "engine/gather.h"
#include "engine/planned_step.h"

namespace headrace {

using PlanOrder = std::pair<uint64_t, size_t>;  // number of the step, first slot

// Slots that wait to be resolved.
struct SlotRange {
  StepPointer step;
  size_t first = 0;
  size_t count = 0;
  uint64_t attempt = 0;  // > 0: a replacement for slot `first`

  PlanOrder order() const { return {step->number(), first}; }
};

// Recycled: it keeps its memory.  Owned by one thread at a time, but for `pending`.
struct Chunk {
  SlotRange slots;
  Gather gather;
  std::vector<Status> needs;       // what asking the index said, per slot
  std::atomic<size_t> pending{0};  // units and ranges not there yet, and its grant
  bool is_late = false;            // granted, and left to the thread that decodes it to read
  std::vector<Grant>
      first_runs;             // of its source's read-ahead: far runs that it is the first to need
  uint64_t sample_bytes = 0;  // about what its samples hold
};

using ChunkPointer = std::shared_ptr<Chunk>;

}  // namespace headrace
