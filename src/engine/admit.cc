// SPDX-License-Identifier: Apache-2.0
//
// Admission: which batch is begun next, and when.  One I/O thread at a time plans.
#include <algorithm>

#include "base/guard.h"
#include "engine/core.h"

namespace headrace {
namespace {

// A chunk holds about this much: below it, queues cost more than the work they carry.
constexpr uint64_t kChunkBytes = 64 << 10;
constexpr uint64_t kCopiedChunkBytes = 512 << 10;  // where there is nothing to decode

}  // namespace

void Engine::Core::io_thread() {
  while (true) {
    Duty duty;
    {
      MutexLock lock(mu_);
      const Stopwatch idle;
      while (!closing_ && !(duty = next_duty())) wait_for_duty(idle);
      if (closing_) return;
      read_.waited_for_room(idle.ns());
    }
    if (duty.read)
      submit(duty.read);
    else if (duty.ask)
      ask(duty.ask);
    else
      admit();
  }
}

// While batches wait for the consumer, one idle thread watches: it looks by itself, the rarer the
// longer it has been idle, so that a consumer that takes a ready batch need not wake anyone
// (a wake costs it 50 us on a virtual machine).
void Engine::Core::wait_for_duty(const Stopwatch& idle) {
  if (watched_ || stopping_ || !head_is_ready()) {
    io_wakes_.wait(mu_);
    return;
  }
  watched_ = true;
  const auto idle_ms = static_cast<int>(std::min<uint64_t>(idle.ns() / 1'000'000, 400));
  io_wakes_.wait_for_ms(mu_, std::max(1, idle_ms / 8));
  watched_ = false;
}

// A thread never waits with a chunk in its hands: a chunk without its grant is parked, so that
// a substitute the head batch needs is always read.
Engine::Core::Duty Engine::Core::next_duty() {
  Duty duty;
  if (stopping_) return duty;
  if (!to_read_.empty()) {
    duty.read = std::move(to_read_.front());
    to_read_.pop_front();
  } else if (!parked_.empty() && may_grant(*parked_.begin()->second)) {
    duty.read = std::move(parked_.begin()->second);
    parked_.erase(parked_.begin());
    duty.read->granted_bytes = duty.read->wanted_bytes;
    stored_ += duty.read->granted_bytes;
    take_memory(duty.read->granted_bytes);
  } else if (!to_fetch_.empty() &&
             (parked_.empty() || to_fetch_.front().order() < parked_.begin()->first)) {
    duty.ask = begin_chunk(std::move(to_fetch_.front()));
    to_fetch_.pop_front();
  } else if (may_admit()) {
    duty.plan = planning_ = true;
  }
  if (duty) ++active_;
  return duty;
}

bool Engine::Core::may_admit() const {
  if (ended_ || planning_ || stopping_ || flights_.size() >= options_.batches_ahead) return false;
  // Slots never take the room that stored bytes need: so the budget holds, head or not.
  return flights_.empty() || used_ - stored_ + flight_bytes_ + options_.read_ahead_bytes <=
                                 options_.memory_budget_bytes;
}

void Engine::Core::admit() {
  const Stopwatch watch;
  const Status status = guard([this] { return admit_step(); });
  planned_.work(1, 0, watch.ns());
  if (!status.ok()) fail_feed(status);
  MutexLock lock(mu_);
  planning_ = false;
  work_done();
  io_wakes_.notify_all();
  consumer_wakes_.notify_all();
}

Status Engine::Core::admit_step() {
  FeedStep step;
  bool more = false;
  {
    MutexLock lock(feed_mu_);
    HEADRACE_ASSIGN(more, feed_->next(step));
  }
  if (!more) {
    MutexLock lock(mu_);
    ended_ = true;
    return {};
  }
  const size_t slots = step.tasks.size();
  const size_t per_chunk = slots_per_chunk(step);
  uint64_t sequence = 0;
  {
    MutexLock lock(mu_);
    sequence = sequence_++;
  }
  const auto flight = std::make_shared<Flight>(sequence, std::move(step), columns_, *pool_);
  if (slots == 0) flight->finish();
  MutexLock lock(mu_);
  if (stopping_) return {};
  flights_.emplace(sequence, flight);
  if (slots == 0) ready_.insert(sequence);
  flight_bytes_ = flight->bytes();
  take_memory(flight->bytes());
  for (size_t first = 0; first < slots; first += per_chunk)
    to_fetch_.push_back({flight, first, std::min(per_chunk, slots - first), 0});
  return {};
}

size_t Engine::Core::slots_per_chunk(const FeedStep& step) const {
  if (step.tasks.empty()) return 1;
  const Source& source = *sources_[step.tasks.front().source].source;
  const uint64_t mean =
      std::max<uint64_t>(1, source.blocks().bytes / std::max<uint64_t>(1, source.size()));
  const auto shares = static_cast<uint64_t>(options_.compute_threads) * 4;
  const uint64_t most = (step.tasks.size() + shares - 1) / shares;
  const uint64_t bytes = only_copies_ ? kCopiedChunkBytes : kChunkBytes;
  return std::clamp<uint64_t>(bytes / mean, 1, std::max<uint64_t>(1, most));
}

}  // namespace headrace
