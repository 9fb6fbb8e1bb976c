// SPDX-License-Identifier: Apache-2.0
#include "engine/delivery.h"

#include <algorithm>
#include <thread>

#include "base/guard.h"
#include "base/machine.h"
#include "trace/clock.h"
#include "trace/spans.h"

namespace headrace {
namespace {

constexpr uint64_t kLookNs = 50'000;

}  // namespace

Delivery::Delivery(const EngineWork& work, Memory& memory, EngineCounters& counters,
                   WorkCount& active)
    : work_(work),
      memory_(memory),
      counters_(counters),
      active_(active),
      batches_ahead_(work.options.batches_ahead),
      looks_again_(work.by_rows() && !work.makes_rows() &&
                   work.options.compute_threads < usable_cpus()) {}

void Delivery::start() {
  MutexLock lock(mu_);
  ended_ = false;
  stopping_ = false;
  end_status_ = {};
}

void Delivery::stop() {
  std::deque<Entry> gone;  // let go after the lock
  MutexLock lock(mu_);
  stopping_ = ended_ = true;
  gone.swap(steps_);
  ready_ = 0;
  has_head_.store(false, std::memory_order_release);
  head_.store(tail());
  consumer_wakes_.notify_all();
}

void Delivery::add(const StepPointer& step) {
  MutexLock lock(mu_);
  if (stopping_) return;
  steps_.push_back({step, false});
  tail_.fetch_add(1);
}

Status Delivery::drop_from(uint64_t number) {
  std::vector<Entry> gone;  // let go after the lock
  MutexLock lock(mu_);
  if (stopping_) return {};
  if (number < head()) return invalid("the step was delivered already");
  if (number >= tail()) return {};
  while (head() + steps_.size() > number) {
    steps_.back().step->drop();
    if (steps_.back().is_ready) --ready_;
    gone.push_back(std::move(steps_.back()));
    steps_.pop_back();
  }
  has_head_.store(head_is_ready(), std::memory_order_release);
  tail_.store(number);
  ended_ = false;
  end_status_ = {};
  return {};
}

void Delivery::end(Status why) {
  MutexLock lock(mu_);
  ended_ = true;
  end_status_ = std::move(why);
  consumer_wakes_.notify_all();
}

bool Delivery::may_open(const PlannedStep& step) {
  if (step.is_open()) return true;
  const uint64_t head = this->head();
  if (step.number() <= head) return true;
  if (step.number() >= head + batches_ahead()) return false;
  // Slots never take the room that reading needs.
  const uint64_t ahead = work_.options.read_ahead_bytes;
  const uint64_t reserve = ahead - std::min(ahead, memory_.stored());
  const uint64_t dense = dense_bytes(work_.columns, step.tasks().size());
  return memory_.make_room(std::max(dense, batch_bytes_.load(std::memory_order_relaxed)) + reserve);
}

void Delivery::open(PlannedStep& step) {
  step.open(work_.columns, memory_.column_pool(), memory_.pool(), memory_.budget());
}

void Delivery::filled(const StepPointer& step) {
  if (step->is_dropped()) return;
  const Stopwatch watch;
  {
    const Span span(Stage::kPack, step->number(), step->bytes());
    const Status packed = guard([&]() -> Status {
      step->finish();
      return {};
    });
    if (!packed.ok()) step->fail(0, packed);
  }
  counters_.pack.work(1, step->bytes(), watch.ns());
  run_stages(step, 0, std::make_shared<WorkCount::Token>(active_.begin()));
}

// From stage `first` on; the token ends with the last.
void Delivery::run_stages(const StepPointer& step, size_t first,
                          const std::shared_ptr<WorkCount::Token>& token) {
  const auto& stages = work_.options.stages;
  const bool is_empty = step->tasks().empty();
  while (is_empty && first < stages.size() && !stages[first]->takes_empty()) ++first;
  if (first == stages.size() || !step->status().ok()) {
    ready(step);
    return;
  }
  const Key draws =
      is_empty ? Key(work_.options.seed) : work_.draws_of(step->tasks().front()).with("batch");
  const uint64_t begin = steady_ns();
  const auto done = [this, token, step, first, begin](Status status, std::unique_ptr<Batch> batch) {
    record_span(Stage::kStage, begin, steady_ns(), step->number(), 0);
    if (!status.ok() && batch && batch->decode_again && !step->stays_on_cpu()) {
      step->begin_again();
      on_again_(step);
      return;
    }
    step->give(std::move(batch));
    if (!status.ok()) step->fail(0, std::move(status));
    run_stages(step, first + 1, token);
  };
  const Status started = guard([&]() -> Status {
    stages[first]->start(step->take(), draws, memory_.pool(), done);
    return {};
  });
  if (started.ok()) return;
  step->fail(0, started);
  ready(step);
}

void Delivery::ready(const StepPointer& step) {
  batch_bytes_.store(step->bytes(), std::memory_order_relaxed);
  MutexLock lock(mu_);
  if (stopping_ || step->is_dropped()) return;
  const uint64_t place = step->number() - head();
  if (steps_[place].is_ready) return;
  steps_[place].is_ready = true;
  ++ready_;
  if (place == 0) has_head_.store(true, std::memory_order_release);
  consumer_wakes_.notify_all();
}

// Takes the head; true when those who read and decode should look for work.
bool Delivery::take(StepPointer& out) {
  out = std::move(steps_.front().step);
  steps_.pop_front();
  --ready_;
  head_.fetch_add(1);
  has_head_.store(head_is_ready(), std::memory_order_release);
  return !head_is_ready() || ready_ <= std::max<size_t>(1, batches_ahead() / 4);
}

// Others run meanwhile, where there are any.
void Delivery::look_again() const {
  const uint64_t until = steady_ns() + kLookNs;
  while (!has_head_.load(std::memory_order_acquire) && steady_ns() < until)
    std::this_thread::yield();
}

void Delivery::end_consuming(uint64_t now_ns) {
  if (consumed_since_ns_ == 0) return;
  record_span(Stage::kConsume, consumed_since_ns_, now_ns, consumed_step_, 0);
  consumed_since_ns_ = 0;
}

Result<Engine::Next> Delivery::next(std::unique_ptr<Batch>& out, int timeout_ms) {
  const Stopwatch watch;
  const uint64_t begin = steady_ns();
  end_consuming(begin);
  StepPointer step;
  bool wake = false;
  if (looks_again_) look_again();
  {
    MutexLock lock(mu_);
    while (!head_is_ready()) {
      if (steps_.empty() && ended_) {
        if (!end_status_.ok()) return end_status_;
        return Engine::Next::kEnd;
      }
      if (!consumer_wakes_.wait_for_ms(mu_, timeout_ms)) {
        counters_.deliver.waited_for_input(watch.ns());
        return Engine::Next::kTimeout;
      }
    }
    wake = take(step);
  }
  counters_.deliver.waited_for_input(watch.ns());
  if (Status failed = step->status(); !failed.ok()) return failed;
  counters_.deliver.work(step->tasks().size(), step->bytes(), 0);
  const uint64_t end = steady_ns();
  record_span(Stage::kDeliver, begin, end, step->number(), step->bytes());
  if (is_tracing()) consumed_since_ns_ = end, consumed_step_ = step->number();
  out = step->take();
  step.reset();  // its memory leaves the budget
  if (wake) on_taken_();
  return Engine::Next::kBatch;
}

}  // namespace headrace
