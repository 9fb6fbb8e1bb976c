// SPDX-License-Identifier: Apache-2.0
//
// Memory: the engine's one budget, and what is given up when it is short.
//
//   counted by grants   columns of batches, ranges read and not yet decoded, shared units
//   counted as idle     buffers that wait in the pool to be used again
//
// Grants go in plan order, and what the batch at the head needs is always granted; so the budget
// never makes anyone wait for ever, and is exceeded by at most what one batch needs.
#pragma once

#include <memory>
#include <vector>

#include "base/budget.h"
#include "batch/buffer_pool.h"
#include "engine/unit_cache.h"

namespace headrace {

// Thread-safe.
class Memory {
 public:
  // Of far storage very many buffers are in use at a time.  `column_arena` may be null.
  // `keeps_runs`: those that are used up stay for the next epoch, as long as there is room.
  Memory(uint64_t budget_bytes, size_t sources, bool is_far, bool keeps_runs,
         std::shared_ptr<Arena> column_arena);

  // Whether so many more bytes fit, once idle memory is given up for them; make_room() gives up
  // idle units too.
  bool has_room(uint64_t bytes);
  bool make_room(uint64_t bytes);

  Budget& budget() { return budget_; }
  const Budget& budget() const { return budget_; }
  // Of each source, what is under way or waits to be decoded: a part of the budget.
  Budget& stored(size_t source) { return *stored_[source]; }
  uint64_t stored() const;
  BufferPool& pool() { return *pool_; }
  BufferPool& column_pool() { return *column_pool_; }
  UnitCache& units() { return units_; }
  const UnitCache& units() const { return units_; }

 private:
  // What would be in use with so many bytes more, which idle buffers may serve.
  uint64_t with(uint64_t bytes) const;

  Budget budget_;
  std::vector<std::unique_ptr<Budget>> stored_;
  uint64_t idle_bytes() const;
  void trim_idle(uint64_t bytes);

  const std::shared_ptr<BufferPool> pool_;
  const std::shared_ptr<BufferPool> column_pool_;  // the same, unless columns have their own arena
  UnitCache units_;
};

}  // namespace headrace
