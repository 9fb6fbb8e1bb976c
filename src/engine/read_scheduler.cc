// SPDX-License-Identifier: Apache-2.0
#include "engine/read_scheduler.h"

#include <algorithm>

#include "base/guard.h"
#include "engine/decoding.h"
#include "trace/spans.h"

namespace headrace {
namespace {

// A chunk holds about this much: below it, queues cost more than the work they carry.
constexpr uint64_t kChunkBytes = 64 << 10;
constexpr uint64_t kCopiedChunkBytes = 4 << 20;  // where there is nothing to decode
// Of far storage, so much is resolved before it is granted: what merges, and what a burst of
// grants takes from.
constexpr uint64_t kResolveAhead = uint64_t{32} << 20;
constexpr size_t kMostSteps = 65536;  // planned at a time
constexpr size_t kIdleChunks = 256;   // kept to be used again

}  // namespace

ReadScheduler::ReadScheduler(const EngineWork& work, Memory& memory, EngineCounters& counters,
                             WorkCount& active, Delivery& delivery, Planner& planner,
                             Reader& reader)
    : work_(work),
      memory_(memory),
      counters_(counters),
      active_(active),
      delivery_(delivery),
      planner_(planner),
      reader_(reader),
      resolve_ahead_bytes_(std::min(kResolveAhead, work.options.memory_budget_bytes / 4)),
      wanted_(work.sources.size()) {}

void ReadScheduler::start() {
  MutexLock lock(mu_);
  stopping_ = ended_ = false;
  started_bytes_ = 0;
  wakes_.notify_all();
}

void ReadScheduler::stop() {
  std::map<PlanOrder, ChunkPointer> resolved;
  std::deque<ChunkPointer> to_read;
  std::deque<SlotRange> to_resolve;
  {
    MutexLock lock(mu_);
    stopping_ = ended_ = true;
    window_.clear();
    resolved_bytes_ = 0;
    resolved.swap(resolved_);
    to_read.swap(to_read_);
    to_resolve.swap(to_resolve_);
  }
  for (const auto& [order, chunk] : resolved) recycle(chunk);
  for (const ChunkPointer& chunk : to_read) recycle(chunk);
}

Status ReadScheduler::while_nobody_plans(const std::function<Status()>& work) {
  MutexLock lock(planning_mu_);
  return work();
}

void ReadScheduler::drop() {
  std::vector<ChunkPointer> resolved;  // let go after the lock, not recycled: a range that is under
                                       // way for a neighbour may still tell them
  std::vector<ChunkPointer> to_read;
  {
    MutexLock lock(mu_);
    const auto is_dropped = [](const SlotRange& slots) { return slots.step->is_dropped(); };
    std::erase_if(to_resolve_, is_dropped);
    for (auto at = resolved_.begin(); at != resolved_.end();) {
      if (!is_dropped(at->second->slots)) {
        ++at;
        continue;
      }
      window_.remove(*at->second);
      resolved_bytes_ -= std::min(resolved_bytes_, at->second->sample_bytes);
      resolved.push_back(std::move(at->second));
      at = resolved_.erase(at);
    }
    std::erase_if(to_read_, [&](const ChunkPointer& chunk) {
      const bool gone = is_dropped(chunk->slots);
      if (gone) to_read.push_back(chunk);
      return gone;
    });
    if (!stopping_) ended_ = false;  // the feed says again when it has no further step
    wakes_.notify_all();
  }
  for (const ChunkPointer& chunk : to_read) recycle(chunk);
}

void ReadScheduler::close() {
  MutexLock lock(mu_);
  closing_ = true;
  wakes_.notify_all();
}

void ReadScheduler::wake() {
  MutexLock lock(mu_);
  // Of rows that lie in memory there is nothing to read, and others plan.
  if (reader_.fills_rows() && to_resolve_.empty() && resolved_.empty() && to_read_.empty()) return;
  if (waiting_ > 0) wakes_.notify_one();
}

void ReadScheduler::run() {
  while (true) {
    Job job;
    {
      MutexLock lock(mu_);
      const Stopwatch idle;
      ++waiting_;
      while (!closing_ && !(job = next_job())) wakes_.wait(mu_);
      --waiting_;
      if (closing_) return;
      // This thread may be away for a while; what is left to read need not wait for it.
      const bool blocks = (job.submit || job.read) && work_.in_caller && !reader_.reads_late();
      if (blocks && waiting_ > 0 && !(resolved_.empty() && to_resolve_.empty()))
        wakes_.notify_one();
      counters_.read.waited_for_room(idle.ns());
    }
    do_job(job);
  }
}

void ReadScheduler::do_job(Job& job) {
  if (job.read) {
    job.read->is_late = false;
    reader_.submit(job.read, job.read->gather.ranges());
  } else if (job.submit) {
    if (!reader_.submit_late(job.submit)) reader_.submit(job.submit, job.ranges);
  } else if (job.resolve) {
    reader_.resolve(*job.resolve, job.by_runs);
    resolved(job.resolve);
  } else {
    plan();
  }
}

ReadScheduler::Job ReadScheduler::next_job() {
  Job job;
  if (stopping_) return job;
  const bool resolve_first = work_.is_far && resolved_bytes_ < resolve_ahead_bytes_;
  if (!to_read_.empty()) {
    job.read = std::move(to_read_.front());
    to_read_.pop_front();
  } else if (resolve_first && may_resolve()) {
    begin_resolve(job);
  } else if (resolve_first && may_plan()) {
    job.plan = planning_ = true;
  } else if (!resolved_.empty() && may_grant(*resolved_.begin()->second)) {
    grant_first(job);
  } else if (may_resolve()) {
    begin_resolve(job);
  } else if (!reader_.fills_rows() && may_plan()) {
    job.plan = planning_ = true;
  }
  if (job) job.token = active_.begin();
  return job;
}

bool ReadScheduler::may_resolve() const {
  if (to_resolve_.empty()) return false;
  return resolved_.empty() || to_resolve_.front().order() < resolved_.begin()->first ||
         (work_.is_far && resolved_bytes_ < resolve_ahead_bytes_);
}

bool ReadScheduler::may_plan() const {
  if (ended_ || planning_ || !to_resolve_.empty()) return false;
  if (!work_.is_far) return delivery_.planned() <= delivery_.batches_ahead();
  return (resolved_.empty() || resolved_bytes_ < resolve_ahead_bytes_) &&
         delivery_.planned() < kMostSteps;
}

// What the chunk would add to what is under way, of each source in wanted_, and in all.
uint64_t ReadScheduler::count_wanted(Chunk& chunk) {
  std::fill(wanted_.begin(), wanted_.end(), 0);
  const uint64_t nominal = reader_.nominal_file();
  if (work_.is_far) {
    for (const Gather::Want& want : chunk.gather.wants())
      if (!want.is_covered)
        wanted_[want.source_number] +=
            want.unit->stored_bytes == kWholeFile ? nominal : want.unit->stored_bytes;
  } else {
    for (const RangePointer& range : chunk.gather.ranges())
      if (!range->resident)
        wanted_[range->source_number] += range->length == kWholeFile ? nominal : range->length;
  }
  uint64_t sum = 0;
  for (const uint64_t bytes : wanted_) sum += bytes;
  for (const UnitPin& pin : chunk.gather.shared_units())
    if (memory_.units().is_absent(pin.unit())) {
      wanted_[reader_.number_of(pin->source)] += pin->stored_bytes();
      sum += pin->most_bytes();
    }
  return sum;
}

bool ReadScheduler::may_grant(Chunk& chunk) {
  const uint64_t bytes = count_wanted(chunk);
  const PlannedStep& step = *chunk.slots.step;
  // One chunk of the head at a time always gets through: others may hold all memory, and wait for
  // the head.
  if (step.number() <= delivery_.head() && step.granted.load() == 0) return true;
  if (bytes == 0) return true;
  bool is_much = false;  // under way: nothing is given up for more
  for (size_t k = 0; k < wanted_.size(); ++k) {
    const uint64_t used = memory_.stored(k).used();
    if (wanted_[k] == 0 || used == 0) continue;
    if (used + wanted_[k] > reader_.read_ahead_bytes(k)) return false;
    const ReadPolicy& policy = work_.sources[k].policy;
    is_much = is_much || used + wanted_[k] >
                             most_ahead_bytes(memory_.budget().limit(), policy.is_far, policy.runs);
  }
  return is_much ? memory_.has_room(bytes + delivery_.bytes_ahead()) : memory_.make_room(bytes);
}

void ReadScheduler::grant_first(Job& job) {
  job.submit = std::move(resolved_.begin()->second);
  resolved_.erase(resolved_.begin());
  Chunk& chunk = *job.submit;
  resolved_bytes_ -= std::min(resolved_bytes_, chunk.sample_bytes);
  chunk.slots.step->granted.fetch_add(1);
  if (work_.is_far) {
    const uint32_t source = chunk.slots.step->tasks()[chunk.slots.first].source;
    const uint64_t used = memory_.stored(source).used() + wanted_[source];
    const uint64_t most = reader_.read_ahead_bytes(source);
    job.ranges = window_.cover(chunk, most - std::min(used, most));
  } else {
    job.ranges.assign(chunk.gather.ranges().begin(), chunk.gather.ranges().end());
  }
  const uint64_t nominal = reader_.nominal_file();
  for (const RangePointer& range : job.ranges) {
    if (range->resident) continue;
    const uint64_t bytes = range->length == kWholeFile ? nominal : range->length;
    range->memory = memory_.budget().take(bytes);
    range->reading = memory_.stored(range->source_number).take(bytes);
  }
}

void ReadScheduler::begin_resolve(Job& job) {
  if (idle_chunks_.empty()) {
    job.resolve = std::make_shared<Chunk>();
  } else {
    job.resolve = std::move(idle_chunks_.back());
    idle_chunks_.pop_back();
  }
  Chunk& chunk = *job.resolve;
  chunk.slots = std::move(to_resolve_.front());
  to_resolve_.pop_front();
  chunk.sample_bytes = 0;
  for (size_t i = 0; i < chunk.slots.count; ++i)
    chunk.sample_bytes += mean_bytes(chunk.slots.step->tasks()[chunk.slots.first + i]);
  job.by_runs = started_bytes_ >= work_.options.ranges_first_bytes;
  started_bytes_ += chunk.sample_bytes;
}

void ReadScheduler::resolved(const ChunkPointer& chunk) {
  {
    MutexLock lock(mu_);
    if (!stopping_ && !chunk->slots.step->is_dropped()) {
      resolved_.emplace(chunk->slots.order(), chunk);
      resolved_bytes_ += chunk->sample_bytes;
      if (work_.is_far) window_.add(chunk);
      return;
    }
  }
  recycle(chunk);
}

void ReadScheduler::add_first(SlotRange slots) {
  MutexLock lock(mu_);
  if (stopping_ || slots.step->is_dropped()) return;
  to_resolve_.push_front(std::move(slots));
  if (waiting_ > 0) wakes_.notify_one();
}

void ReadScheduler::add_again(const StepPointer& step) {
  const size_t slots = step->tasks().size();
  const size_t per_chunk = slots_per_chunk(*step);
  std::deque<SlotRange> all;
  for (size_t first = 0; first < slots; first += per_chunk)
    all.push_back({step, first, std::min(per_chunk, slots - first), 0});
  MutexLock lock(mu_);
  if (stopping_ || step->is_dropped()) return;
  to_resolve_.insert(to_resolve_.begin(), all.begin(), all.end());
  if (waiting_ > 0) wakes_.notify_all();
}

bool ReadScheduler::read_late(const ChunkPointer& chunk, std::vector<Buffer>& warm) {
  if (reader_.read_late(*chunk, warm)) return true;
  {
    MutexLock lock(mu_);
    if (!stopping_ && !chunk->slots.step->is_dropped()) {
      to_read_.push_back(chunk);
      if (waiting_ > 0) wakes_.notify_one();
      return false;
    }
  }
  recycle(chunk);
  return false;
}

void ReadScheduler::recycle(const ChunkPointer& chunk) {
  chunk->gather.clear();
  chunk->needs.clear();
  chunk->first_runs.clear();
  chunk->is_late = false;
  const StepPointer step = std::move(chunk->slots.step);
  chunk->slots = {};
  if (step->granted.load() > 0) step->granted.fetch_sub(1);
  uint64_t most = 0;
  for (size_t k = 0; k < work_.sources.size(); ++k) most += reader_.read_ahead_bytes(k);
  const uint64_t stored = memory_.stored();
  MutexLock lock(mu_);
  if (idle_chunks_.size() < kIdleChunks) idle_chunks_.push_back(chunk);
  if (waiting_ == 0 || resolved_.empty()) return;
  // Woken for a quarter of the read-ahead at a time, not for every picture; for the head at once.
  if (stored <= most / 4 * 3 || resolved_.begin()->first.first <= delivery_.head())
    wakes_.notify_one();
}

void ReadScheduler::plan() {
  const Stopwatch watch;
  MutexLock planning(planning_mu_);
  const Status status = guard([this] { return plan_step(); });
  counters_.plan.work(1, 0, watch.ns());
  if (!status.ok()) delivery_.end(status);
  MutexLock lock(mu_);
  planning_ = false;
  if (!status.ok()) ended_ = true;
}

bool ReadScheduler::plan_now() {
  WorkCount::Token token;
  {
    MutexLock lock(mu_);
    if (stopping_ || !may_plan()) return false;
    planning_ = true;
    token = active_.begin();
  }
  plan();
  return true;
}

void ReadScheduler::read_instead(const SlotRange& rows) {
  reader_.note_cold_rows();
  add_first(rows);
}

Status ReadScheduler::plan_step() {
  const Span span(Stage::kPlan, delivery_.tail(), 0);
  FeedStep planned;
  HEADRACE_ASSIGN(const bool more, planner_.next(planned));
  if (!more) {
    delivery_.end({});
    MutexLock lock(mu_);
    ended_ = true;
    return {};
  }
  const auto step = std::make_shared<PlannedStep>(delivery_.tail(), std::move(planned));
  const size_t slots = step->tasks().size();
  const size_t per_chunk = slots_per_chunk(*step);
  delivery_.add(step);
  if (slots == 0) {
    delivery_.open(*step);
    delivery_.filled(step);
    return {};
  }
  if (reader_.take_rows()) {
    for (size_t first = 0; first < slots; first += per_chunk)
      decoding_->add(SlotRange{step, first, std::min(per_chunk, slots - first), 0});
    return {};
  }
  MutexLock lock(mu_);
  if (stopping_) return {};
  if (work_.by_rows() && waiting_ > 0) wakes_.notify_one();  // the planner may be no I/O thread
  for (size_t first = 0; first < slots; first += per_chunk)
    to_resolve_.push_back({step, first, std::min(per_chunk, slots - first), 0});
  return {};
}

uint64_t ReadScheduler::mean_bytes(const Task& task) const {
  const Source& source = *work_.sources[task.source].source;
  return std::max<uint64_t>(1, source.blocks().bytes / std::max<uint64_t>(1, source.size()));
}

size_t ReadScheduler::slots_per_chunk(const PlannedStep& step) const {
  if (step.tasks().empty()) return 1;
  if (work_.makes_rows()) {
    const RowMaker& maker = *work_.makers[step.tasks().front().source];
    return std::max<size_t>(1, maker.rows_together(step.tasks().size()));
  }
  if (work_.by_rows()) {
    const auto threads = static_cast<uint64_t>(work_.options.compute_threads);
    return std::max((step.tasks().size() + threads - 1) / threads,
                    kChunkBytes / mean_bytes(step.tasks().front()));
  }
  // Finer where decoding takes long, so that all threads end together.
  const auto shares =
      static_cast<uint64_t>(work_.options.compute_threads) * (work_.only_copies ? 1 : 4);
  const uint64_t most = (step.tasks().size() + shares - 1) / shares;
  // What a thread copies counts against the budget only when its chunk is done.
  const uint64_t copied =
      std::clamp(work_.options.memory_budget_bytes / 64, kChunkBytes, kCopiedChunkBytes);
  const uint64_t bytes = work_.only_copies ? copied : kChunkBytes;
  return std::clamp<uint64_t>(bytes / mean_bytes(step.tasks().front()), 1,
                              std::max<uint64_t>(1, most));
}

}  // namespace headrace
