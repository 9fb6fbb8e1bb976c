// SPDX-License-Identifier: Apache-2.0
//
// Delivery: the steps from planned to taken, in plan order; packing, stages, hand-over.
//
//   add() ─► planned … open (has slots) … filled ─► pack ─► stage ─► stage ─► ready ─► next()
//
// Who wakes whom:
//   - A step becomes ready, the feed ends or fails, stop(): the consumer is woken.
//   - A batch is taken: the threads that read and decode are woken (on_taken) only when the next
//     batch is not ready, or at most one is, or a quarter of the batches ahead.  Until then they
//     have no work that the consumer would notice, and taking a ready batch wakes nobody.
//   - A batch of rows (rows.h) is made in less time than it takes to sleep and be woken: where a
//     processor is to spare the consumer looks again for 50 µs before it sleeps.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "engine/memory.h"
#include "engine/planned_step.h"
#include "engine/work.h"
#include "engine/work_count.h"

namespace headrace {

// Thread-safe; next() by one consumer at a time.
class Delivery {
 public:
  Delivery(const EngineWork& work, Memory& memory, EngineCounters& counters, WorkCount& active);

  void start() HEADRACE_EXCLUDES(mu_);
  // Nothing is delivered any more; a consumer that waits is told kEnd.
  void stop() HEADRACE_EXCLUDES(mu_);
  void set_on_taken(std::function<void()> on_taken) { on_taken_ = std::move(on_taken); }
  // Whose slots are to be filled once more (PlannedStep::begin_again).
  void set_on_again(std::function<void(const StepPointer&)> on_again) {
    on_again_ = std::move(on_again);
  }
  size_t batches_ahead() const { return batches_ahead_.load(std::memory_order_relaxed); }
  void set_batches_ahead(size_t n) { batches_ahead_.store(n, std::memory_order_relaxed); }

  // The next planned step.  Its number is tail().
  void add(const StepPointer& step) HEADRACE_EXCLUDES(mu_);
  // Drops the steps from that number on; they are planned anew.  Fails when it was delivered.
  Status drop_from(uint64_t number) HEADRACE_EXCLUDES(mu_);
  // The feed has no further step, or failed.
  void end(Status why) HEADRACE_EXCLUDES(mu_);

  // The number of the step that is delivered next: what it needs is always granted.
  uint64_t head() const { return head_.load(std::memory_order_acquire); }
  uint64_t tail() const { return tail_.load(std::memory_order_acquire); }
  size_t planned() const { return static_cast<size_t>(tail() - head()); }

  // What the batches ahead and one more take, about: room that far reading leaves to them.
  uint64_t bytes_ahead() const {
    return (batches_ahead() + 1) * batch_bytes_.load(std::memory_order_relaxed);
  }

  // Whether the step has slots, or may have them now: at most `batches_ahead` steps from the head
  // do, as far as the memory goes; the head always does.
  bool may_open(const PlannedStep& step);
  void open(PlannedStep& step);

  // All slots of the step are filled: packs it, runs the stages, makes it ready.
  void filled(const StepPointer& step) HEADRACE_EXCLUDES(mu_);

  Result<Engine::Next> next(std::unique_ptr<Batch>& out, int timeout_ms) HEADRACE_EXCLUDES(mu_);

 private:
  struct Entry {
    StepPointer step;
    bool is_ready = false;
  };
  bool head_is_ready() const HEADRACE_REQUIRES(mu_) {
    return !steps_.empty() && steps_.front().is_ready;
  }
  void run_stages(const StepPointer& step, size_t first,
                  const std::shared_ptr<WorkCount::Token>& t);
  void ready(const StepPointer& step) HEADRACE_EXCLUDES(mu_);
  bool take(StepPointer& out) HEADRACE_REQUIRES(mu_);
  void look_again() const;
  void end_consuming(uint64_t now_ns);

  const EngineWork& work_;
  Memory& memory_;
  EngineCounters& counters_;
  WorkCount& active_;
  std::function<void()> on_taken_;
  std::function<void(const StepPointer&)> on_again_;
  std::atomic<size_t> batches_ahead_;
  std::atomic<uint64_t> head_{0}, tail_{0};
  std::atomic<bool> has_head_{false};  // head_is_ready(), for who looks without the lock
  const bool looks_again_;
  std::atomic<uint64_t> batch_bytes_{0};  // what the last batch took: a guess at the next
  // The consumer's: when it got which batch, while a trace is written.
  uint64_t consumed_since_ns_ = 0, consumed_step_ = 0;
  Mutex mu_;
  CondVar consumer_wakes_;
  std::deque<Entry> steps_ HEADRACE_GUARDED_BY(mu_);  // from head() to tail()
  size_t ready_ HEADRACE_GUARDED_BY(mu_) = 0;         // of them
  bool ended_ HEADRACE_GUARDED_BY(mu_) = true;
  bool stopping_ HEADRACE_GUARDED_BY(mu_) = false;
  Status end_status_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
