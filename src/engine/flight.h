// SPDX-License-Identifier: Apache-2.0
//
// What is under way inside the engine: batches being filled, and chunks of them.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/gather.h"

namespace headrace {

// A batch being filled.  Slots are filled by many threads; finish() by the one that
// filled the last.
class Flight {
 public:
  Flight(uint64_t sequence, FeedStep step, const std::vector<ColumnWork>& columns,
         BufferPool& pool);

  uint64_t sequence() const { return sequence_; }
  const std::vector<Task>& tasks() const { return step_.tasks; }
  Task& task(size_t slot) { return step_.tasks[slot]; }  // by the slot's thread only
  uint64_t epoch() const { return step_.epoch; }
  const Task& planned(size_t slot) const { return planned_[slot]; }
  ColumnBuilder& column(size_t c) { return builders_[c]; }

  // Keeps the failure of the lowest slot, so that the same data gives the same error.
  void fail(size_t slot, Status status);
  // True for the caller that filled the last slot.
  bool slots_done(size_t n) { return remaining_.fetch_sub(n, std::memory_order_acq_rel) == n; }
  // Packs the columns.  Called once, by the thread that slots_done() chose.
  void finish();
  // After finish(), by the same thread.
  Status apply(const BatchStep& step, Key draws, BufferPool& pool);

  Status status() const;
  std::unique_ptr<Batch> take() { return std::move(batch_); }
  uint64_t bytes() const { return bytes_; }

 private:
  void count_bytes();

  const uint64_t sequence_;
  FeedStep step_;
  const std::vector<Task> planned_;  // before any replacement
  std::vector<ColumnBuilder> builders_;
  std::atomic<size_t> remaining_;
  std::unique_ptr<Batch> batch_;
  uint64_t bytes_ = 0;  // of dense columns from the start, of all after finish()
  mutable Mutex mu_;
  size_t failed_slot_ HEADRACE_GUARDED_BY(mu_) = 0;
  Status status_ HEADRACE_GUARDED_BY(mu_);
};

// A run of slots that waits to be read.
struct Errand {
  std::shared_ptr<Flight> flight;
  size_t first = 0;
  size_t count = 0;
  uint64_t attempt = 0;  // > 0: a replacement for slot `first`

  // Plan order.
  std::pair<uint64_t, size_t> order() const { return {flight->sequence(), first}; }
};

// An errand under way through read and decode.  Recycled: it keeps its buffers.
struct Chunk {
  Errand errand;
  Gather gather;
  std::vector<Status> needs;  // what asking the index said, per slot
  std::vector<ReadRequest> reads;
  std::atomic<size_t> pending{0};  // reads and shared units not there yet
  bool is_late = false;            // granted, and left to the thread that decodes it to read
  uint64_t wanted_bytes = 0;       // what its reads will hold
  uint64_t granted_bytes = 0;      // what of it counts against the budget now
};

using ChunkPtr = std::shared_ptr<Chunk>;

}  // namespace headrace
