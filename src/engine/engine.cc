// SPDX-License-Identifier: Apache-2.0
//
// The life of the engine: threads, start, stop, hand-over.
#include "engine/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/guard.h"
#include "engine/core.h"

namespace headrace {
namespace {

Status made_before_fork() {
  return invalid(
      "this Loader was made before a fork and its threads stayed with the parent: make the Loader "
      "in the child");
}

}  // namespace

Engine::Engine(std::vector<SourceWork> sources, std::vector<ColumnWork> columns,
               EngineOptions options)
    : core_(std::make_unique<Core>(std::move(sources), std::move(columns), options)) {}
Engine::~Engine() {
  // In a forked child the threads stayed with the parent: joining them, or destroying a
  // condition variable they wait on, would hang.  The child keeps the memory.
  if (core_->is_forked()) (void)core_.release();
}
Status Engine::start(std::unique_ptr<Feed> feed) {
  return core_->start(std::move(feed));
}
void Engine::stop() {
  core_->stop();
}
Result<Engine::Next> Engine::next(std::unique_ptr<Batch>& out, int timeout_ms) {
  return core_->next(out, timeout_ms);
}
bool Engine::is_forked() const {
  return core_->is_forked();
}
EngineStats Engine::stats() const {
  return core_->stats();
}
std::vector<Quarantined> Engine::quarantine() const {
  return core_->quarantine();
}

Engine::Core::Core(std::vector<SourceWork> sources, std::vector<ColumnWork> columns,
                   EngineOptions options)
    : sources_(std::move(sources)),
      columns_(std::move(columns)),
      options_(options),
      pid_(getpid()),
      pool_(BufferPool::make(options.memory_budget_bytes / 2)) {
  options_.read_ahead_bytes = std::min(options_.read_ahead_bytes, options_.memory_budget_bytes / 4);
  for (const ColumnWork& c : columns_) wants_key_ = wants_key_ || c.is_key;
  settle_copies();
}

// Which columns are values as they are stored, whose buffers can go into the batch uncopied.
void Engine::Core::settle_copies() {
  constexpr uint64_t kSmall = 64;  // a number: no work to speak of
  only_copies_ = is_light_ = true;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const ColumnSpec& spec = columns_[c].spec;
    if (columns_[c].is_key || (spec.value.is_fixed() && spec.value.bytes() <= kSmall)) continue;
    bool copies = spec.packing == Packing::kList && !spec.many;
    for (const SourceWork& source : sources_) {
      copies = copies && source.decoders[c]->copies();
      is_light_ = is_light_ && source.decoders[c]->is_light();
    }
    hands_over_ = hands_over_ || copies;
    only_copies_ = only_copies_ && copies;
  }
}

Engine::Core::~Core() {
  stop();
  {
    MutexLock lock(mu_);
    closing_ = true;
    io_wakes_.notify_all();
    compute_wakes_.notify_all();
  }
  for (std::thread& t : threads_) t.join();
}

bool Engine::Core::is_forked() const {
  return getpid() != pid_;
}

void Engine::Core::start_threads() {
  if (!threads_.empty()) return;
  for (int i = 0; i < options_.io_threads; ++i) threads_.emplace_back([this] { io_thread(); });
  for (int i = 0; i < options_.compute_threads; ++i)
    threads_.emplace_back([this] { compute_thread(); });
}

Status Engine::Core::start(std::unique_ptr<Feed> feed) {
  if (is_forked()) return made_before_fork();
  stop();
  return guard([&]() -> Status {
    MutexLock lock(mu_);
    feed_ = std::move(feed);
    ended_ = false;
    feed_status_ = {};
    replaced_.clear();
    start_threads();
    io_wakes_.notify_all();
    return {};
  });
}

void Engine::Core::stop() {
  if (is_forked()) return;
  std::multimap<std::pair<uint64_t, size_t>, Job> abandoned;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    ended_ = true;
    to_fetch_.clear();
    for (auto& [order, chunk] : parked_) drop(chunk);
    parked_.clear();
    for (const ChunkPtr& chunk : to_read_) drop(chunk);
    to_read_.clear();
    abandoned.swap(to_decode_);
    for (auto& [order, job] : abandoned)
      if (job.chunk) drop(job.chunk);
    io_wakes_.notify_all();
    consumer_wakes_.notify_all();
  }
  // Units that wait to be opened: whoever waits for them must hear of it.
  for (auto& [order, job] : abandoned) {
    if (!job.unit) continue;
    job.unit->status = cancelled("the epoch was ended");
    units_.finish(job.unit);
  }
  MutexLock lock(mu_);
  while (active_ > 0) quiet_.wait(mu_);
  flights_.clear();
  ready_.clear();
  stored_ = 0;
  used_ = units_.bytes();
  feed_.reset();
  stopping_ = false;
  consumer_wakes_.notify_all();
}

Result<Engine::Next> Engine::Core::next(std::unique_ptr<Batch>& out, int timeout_ms) {
  if (is_forked()) return made_before_fork();
  const Stopwatch watch;
  std::shared_ptr<Flight> flight;
  {
    MutexLock lock(mu_);
    const bool was_ready = head_is_ready();
    while (!head_is_ready()) {
      if (flights_.empty() && ended_ && !planning_) {
        if (!feed_status_.ok()) return feed_status_;
        return Next::kEnd;
      }
      consumer_waits_ = true;
      const bool woken = consumer_wakes_.wait_for_ms(mu_, timeout_ms);
      consumer_waits_ = false;
      if (!woken) {
        delivered_.waited_for_input(watch.ns());
        return Next::kTimeout;
      }
    }
    flight = flights_.begin()->second;
    ready_.erase(flights_.begin()->first);
    flights_.erase(flights_.begin());
    used_ -= std::min(used_, flight->bytes());
    if (!parked_.empty())
      io_wakes_.notify_all();
    else if (!was_ready || !watched_)
      io_wakes_.notify_one();  // to plan
  }
  delivered_.waited_for_input(watch.ns());
  if (Status failed = flight->status(); !failed.ok()) {
    stop();
    return failed;
  }
  delivered_.work(flight->tasks().size(), flight->bytes(), 0);
  out = flight->take();
  return Next::kBatch;
}

void Engine::Core::take_memory(uint64_t bytes) {
  used_ += bytes;
  peak_ = std::max(peak_, used_);
}

void Engine::Core::work_done() {
  if (--active_ == 0) quiet_.notify_all();
}

bool Engine::Core::head_is_ready() const {
  return !flights_.empty() && ready_.count(flights_.begin()->first) != 0;
}

uint64_t Engine::Core::head() const {
  return flights_.empty() ? sequence_ : flights_.begin()->first;
}

void Engine::Core::fail_feed(const Status& status) {
  MutexLock lock(mu_);
  feed_status_ = status;
  ended_ = true;
}

Key Engine::Core::draws_of(const Task& task) const {
  return Key(options_.seed).with(sources_[task.source].id).with(task.epoch).with(task.sample);
}

Status Engine::Core::explain(Status status, const Task& task) const {
  return status.of_sample(task.sample, sources_[task.source].source->key(task.sample));
}

EngineStats Engine::Core::stats() const {
  EngineStats out;
  out.plan = planned_.snapshot();
  out.read = read_.snapshot();
  out.decode = decoded_.snapshot();
  out.pack = packed_.snapshot();
  out.deliver = delivered_.snapshot();
  out.units_reread = units_.reread();
  for (const SourceWork& source : sources_)
    for (const auto& decoder : source.decoders) out.damaged += decoder ? decoder->damaged() : 0;
  MutexLock lock(mu_);
  out.memory_used = used_;
  out.memory_peak = peak_;
  out.memory_budget = options_.memory_budget_bytes;
  out.notes = notes_;
  return out;
}

std::vector<Quarantined> Engine::Core::quarantine() const {
  MutexLock lock(mu_);
  return quarantine_;
}

}  // namespace headrace
