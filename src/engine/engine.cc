// SPDX-License-Identifier: Apache-2.0
//
// The life of the engine: threads, start, stop, hand-over.
#include "engine/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/guard.h"
#include "engine/core.h"
#include "trace/spans.h"

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
    : core_(std::make_unique<Core>(std::move(sources), std::move(columns), std::move(options))) {}
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
Status Engine::replan(uint64_t from, const std::function<void(Feed&)>& change) {
  return core_->replan(from, change);
}
bool Engine::is_forked() const {
  return core_->is_forked();
}
void Engine::set_limits(const EngineLimits& limits) {
  core_->set_limits(limits);
}
EngineStats Engine::stats() const {
  return core_->stats();
}
std::vector<Quarantined> Engine::quarantine() const {
  return core_->quarantine();
}

Engine::Core::Core(std::vector<SourceWork> sources, std::vector<ColumnWork> columns,
                   EngineOptions options)
    : work_(std::move(sources), std::move(columns), std::move(options)),
      pid_(getpid()),
      memory_(work_.options.memory_budget_bytes, work_.sources.size(), work_.is_far,
              work_.keeps_runs, work_.options.column_arena),
      bad_(work_.options.bad_samples),
      delivery_(work_, memory_, counters_, active_),
      decoding_(work_, memory_, counters_, active_, delivery_, planner_, bad_),
      reader_(work_, memory_, counters_, active_),
      scheduler_(work_, memory_, counters_, active_, delivery_, planner_, reader_) {
  decoding_.connect(&scheduler_);
  scheduler_.connect(&decoding_);
  reader_.connect(&decoding_, [this] { scheduler_.wake(); });
  delivery_.set_on_again([this](const StepPointer& step) { scheduler_.add_again(step); });
  delivery_.set_on_taken([this] {
    decoding_.wake();
    scheduler_.wake();
  });
}

Engine::Core::~Core() {
  stop();
  scheduler_.close();
  decoding_.close();
  for (std::thread& t : threads_) t.join();
}

bool Engine::Core::is_forked() const {
  return getpid() != pid_;
}

void Engine::Core::start_threads() {
  if (!threads_.empty()) return;
  for (int i = 0; i < work_.options.io_threads; ++i)
    threads_.emplace_back([this, i] {
      name_this_thread(fmt::format("hr-io-{}", i));
      scheduler_.run();
    });
  for (int i = 0; i < work_.options.compute_threads; ++i)
    threads_.emplace_back([this, i] {
      name_this_thread(fmt::format("hr-compute-{}", i));
      decoding_.run();
    });
}

Status Engine::Core::start(std::unique_ptr<Feed> feed) {
  if (is_forked()) return made_before_fork();
  stop();
  return guard([&]() -> Status {
    planner_.start(std::move(feed));
    bad_.start();
    reader_.start(delivery_.tail());
    delivery_.start();
    first_step_ = delivery_.tail();
    decoding_.start();
    scheduler_.start();
    decoding_.wake();  // rows: there is something to plan
    start_threads();
    return {};
  });
}

// Those who work on a dropped step find out when they pass it on; reads of it that are under way
// complete, and what several samples share stays in the cache.
Status Engine::Core::replan(uint64_t from, const std::function<void(Feed&)>& change) {
  if (is_forked()) return made_before_fork();
  return scheduler_.while_nobody_plans([&]() -> Status {
    HEADRACE_TRY(delivery_.drop_from(first_step_ + from));
    // Before the feed goes on: its next step has the number of one that was dropped.
    decoding_.drop();
    scheduler_.drop();
    planner_.change(change);
    decoding_.wake();  // there may be room now
    return {};
  });
}

// One path for the end of data, errors and early exit.
void Engine::Core::stop() {
  if (is_forked() || threads_.empty()) return;
  delivery_.stop();
  scheduler_.stop();
  decoding_.stop();
  reader_.cancel();
  active_.wait_none();
  // What a thread put back while it was being stopped.
  scheduler_.stop();
  decoding_.stop();
  planner_.stop();
}

Result<Engine::Next> Engine::Core::next(std::unique_ptr<Batch>& out, int timeout_ms) {
  if (is_forked()) return made_before_fork();
  auto outcome = delivery_.next(out, timeout_ms);
  if (!outcome.ok()) stop();
  return outcome;
}

void Engine::Core::set_limits(const EngineLimits& limits) {
  memory_.budget().set_limit(limits.memory_budget_bytes);
  delivery_.set_batches_ahead(limits.batches_ahead);
  reader_.set_read_ahead(std::min(limits.read_ahead_bytes, limits.memory_budget_bytes / 4),
                         limits.memory_budget_bytes);
  decoding_.wake();
  scheduler_.wake();
}

EngineStats Engine::Core::stats() const {
  EngineStats out;
  out.plan = counters_.plan.snapshot();
  out.resolve = counters_.resolve.snapshot();
  out.read = counters_.read.snapshot();
  out.decode = counters_.decode.snapshot();
  out.pack = counters_.pack.snapshot();
  out.deliver = counters_.deliver.snapshot();
  out.read_latency_median_ns = counters_.read_latency.quantile(0.5);
  out.read_latency_p99_ns = counters_.read_latency.quantile(0.99);
  out.reads_under_way = static_cast<uint64_t>(std::max<int64_t>(0, counters_.reads_under_way));
  out.most_reads_under_way = static_cast<uint64_t>(counters_.most_reads_under_way.load());
  for (size_t k = 0; k < work_.sources.size(); ++k)
    out.read_ahead_bytes += reader_.read_ahead_bytes(k);
  out.units_reread = memory_.units().reread();
  for (const SourceWork& source : work_.sources)
    for (const auto& decoder : source.decoders) out.damaged += decoder ? decoder->damaged() : 0;
  out.memory_used = memory_.budget().used();
  out.memory_peak = memory_.budget().peak();
  out.memory_budget = memory_.budget().limit();
  return out;
}

}  // namespace headrace
