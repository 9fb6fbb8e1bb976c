// SPDX-License-Identifier: Apache-2.0
//
// PlannedStep: one step of the feed on its way through the engine.  First it is planned: tasks,
// some 40 bytes a sample, far ahead.  From its first sample decoded on it has slots, and is the
// batch being filled.  In the end the batch is taken out of it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/mutex.h"
#include "engine/engine.h"

namespace headrace {

// Slots are filled by many threads; finish() is called by the one that filled the last.
class PlannedStep {
 public:
  PlannedStep(uint64_t number, FeedStep planned);

  uint64_t number() const { return number_; }  // counted by the engine: plan order
  const std::vector<Task>& tasks() const { return step_.tasks; }
  Task& task(size_t slot) { return step_.tasks[slot]; }  // by the slot's thread only
  uint64_t epoch() const { return step_.epoch; }
  Task planned(size_t slot) const HEADRACE_EXCLUDES(mu_);  // before any replacement
  void replace(size_t slot, const Task& task) HEADRACE_EXCLUDES(mu_);

  // Allocates the columns, once; later calls do nothing.  Values of lists are no such memory that a
  // device copies from by itself: nvJPEG reads past the end of those.
  // Where there is no memory for them the step has failed, and nobody may touch a column.
  void open(const std::vector<ColumnWork>& columns, BufferPool& pool, BufferPool& list_pool,
            Budget& budget) HEADRACE_EXCLUDES(mu_);
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  bool lacks_columns() const { return lacks_columns_; }     // once it is open
  ColumnBuilder& column(size_t c) { return builders_[c]; }  // once it is open

  // Keeps the failure of the lowest slot, so that the same data gives the same error.
  void fail(size_t slot, Status status) HEADRACE_EXCLUDES(mu_);
  Status status() const HEADRACE_EXCLUDES(mu_);
  // True for the caller that filled the last slot.
  bool slots_done(size_t n) { return remaining_.fetch_sub(n, std::memory_order_acq_rel) == n; }
  // Counts what its columns hold now.
  void count_memory() HEADRACE_EXCLUDES(mu_);
  // Packs the columns.  Called once, by the thread that slots_done() chose.
  void finish() HEADRACE_EXCLUDES(mu_);

  // Planned anew: nothing of it is delivered any more.  Set by Delivery.
  void drop() { is_dropped_.store(true, std::memory_order_release); }
  bool is_dropped() const { return is_dropped_.load(std::memory_order_acquire); }

  // A stage could not make a value that was left to it (Batch::decode_again): all slots are filled
  // once more, by the CPU alone.  Nobody works on it when this is called.
  void begin_again() HEADRACE_EXCLUDES(mu_);
  bool stays_on_cpu() const { return stays_on_cpu_.load(std::memory_order_acquire); }

  // Chunks of it that were granted and are not decoded yet: counted by ReadScheduler.
  std::atomic<size_t> granted{0};

  std::unique_ptr<Batch> take() { return std::move(batch_); }
  void give(std::unique_ptr<Batch> batch) HEADRACE_EXCLUDES(mu_);  // after a stage
  uint64_t bytes() const HEADRACE_EXCLUDES(mu_);

 private:
  void count(uint64_t bytes) HEADRACE_REQUIRES(mu_);

  const uint64_t number_;
  FeedStep step_;
  std::vector<ColumnBuilder> builders_;
  std::atomic<size_t> remaining_;
  std::atomic<bool> is_open_{false};
  bool lacks_columns_ = false;  // written before is_open_
  std::atomic<bool> is_dropped_{false};
  std::atomic<bool> stays_on_cpu_{false};
  std::unique_ptr<Batch> batch_;
  mutable Mutex mu_;
  Grant memory_ HEADRACE_GUARDED_BY(mu_);
  std::vector<std::pair<size_t, Task>> replaced_ HEADRACE_GUARDED_BY(mu_);  // as first planned
  size_t failed_slot_ HEADRACE_GUARDED_BY(mu_) = 0;
  Status status_ HEADRACE_GUARDED_BY(mu_);
};

using StepPointer = std::shared_ptr<PlannedStep>;

// What the columns of a batch take.
uint64_t bytes_of(const Batch& batch);
// What the dense columns of so many samples take.
uint64_t dense_bytes(const std::vector<ColumnWork>& columns, size_t samples);

}  // namespace headrace
