// SPDX-License-Identifier: Apache-2.0
#include "engine/decoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/guard.h"
#include "base/machine.h"
#include "engine/read_now.h"
#include "engine/read_scheduler.h"
#include "engine/values.h"
#include "trace/spans.h"

namespace headrace {

Decoding::Decoding(const EngineWork& work, Memory& memory, EngineCounters& counters,
                   WorkCount& active, Delivery& delivery, Planner& planner, BadSampleLog& bad)
    : work_(work),
      memory_(memory),
      counters_(counters),
      active_(active),
      delivery_(delivery),
      planner_(planner),
      bad_(bad),
      most_awake_(work.is_light ? std::min(work.options.compute_threads, usable_cpus())
                                : work.options.compute_threads),
      share_(work.options.shared_cpus, work.options.processes, work.options.compute_threads) {}

void Decoding::start() {
  MutexLock lock(mu_);
  stopping_ = false;
}

void Decoding::stop() {
  std::map<PlanOrder, ChunkPointer> chunks;
  std::deque<UnitPointer> units;
  std::deque<SlotRange> rows;  // let go after the lock
  {
    MutexLock lock(mu_);
    stopping_ = true;
    rows.swap(rows_);
    chunks.swap(chunks_);
    units.swap(units_);
  }
  for (const auto& [order, chunk] : chunks) scheduler_->recycle(chunk);
  // Whoever waits for these must hear of it.
  for (const UnitPointer& unit : units) {
    unit->status = cancelled("the epoch was ended");
    memory_.units().finish(unit);
  }
}

void Decoding::drop() {
  std::vector<ChunkPointer> gone;
  {
    MutexLock lock(mu_);
    std::erase_if(rows_, [](const SlotRange& slots) { return slots.step->is_dropped(); });
    for (auto at = chunks_.begin(); at != chunks_.end();) {
      if (!at->second->slots.step->is_dropped()) {
        ++at;
        continue;
      }
      gone.push_back(std::move(at->second));
      at = chunks_.erase(at);
    }
  }
  for (const ChunkPointer& chunk : gone) scheduler_->recycle(chunk);
}

void Decoding::close() {
  MutexLock lock(mu_);
  closing_ = true;
  ++changes_;  // one that plans rows is about to wait
  wakes_.notify_all();
}

void Decoding::add(const ChunkPointer& chunk) {
  {
    MutexLock lock(mu_);
    if (!stopping_ && !chunk->slots.step->is_dropped()) {
      chunks_.emplace(chunk->slots.order(), chunk);
      ++changes_;
      wake_one();
      return;
    }
  }
  scheduler_->recycle(chunk);
}

void Decoding::add(SlotRange rows) {
  MutexLock lock(mu_);
  if (stopping_ || rows.step->is_dropped()) return;
  rows_.push_back(std::move(rows));
  ++changes_;
  wake_one();
}

void Decoding::add(const UnitPointer& unit) {
  {
    MutexLock lock(mu_);
    if (!stopping_) {
      units_.push_back(unit);
      ++changes_;
      wake_one();
      return;
    }
  }
  if (unit->status.ok()) unit->status = cancelled("the epoch was ended");
  memory_.units().finish(unit);
}

// Where there is little to decode, more threads than processors only take turns.
void Decoding::wake_one() {
  if (waiting_ > 0 && work_.options.compute_threads - waiting_ < most_awake_) wakes_.notify_one();
}

void Decoding::wake() {
  MutexLock lock(mu_);
  ++changes_;
  if (waiting_ == 0) return;
  if (!chunks_.empty() || !rows_.empty())
    wakes_.notify_all();
  else if (work_.by_rows())
    wakes_.notify_one();  // to plan
}

bool Decoding::rows_come_first() const {
  return !rows_.empty() && (chunks_.empty() || rows_.front().order() < chunks_.begin()->first);
}

// Of the threads, this one is counted among those that wait.
bool Decoding::may_run_more() const {
  if (!share_.is_shared()) return true;
  return work_.options.compute_threads - waiting_ - share_.away() < share_.may_run();
}

void Decoding::leave() {
  MutexLock lock(mu_);
  share_.leave();
  if (waiting_ > 0 && has_work()) wakes_.notify_one();
}

void Decoding::come_back(uint64_t busy_ns) {
  MutexLock lock(mu_);
  if (share_.come_back(busy_ns, steady_ns()) && waiting_ > 0 && has_work()) wakes_.notify_all();
}

Decoding::Job Decoding::next_job() {
  Job job;
  if (!may_run_more()) return job;
  if (!units_.empty()) {
    job.unit = std::move(units_.front());
    units_.pop_front();
  } else if (rows_come_first()) {
    if (!delivery_.may_open(*rows_.front().step)) return job;
    job.rows = std::move(rows_.front());
    rows_.pop_front();
    delivery_.open(*job.rows.step);
  } else if (!chunks_.empty() && delivery_.may_open(*chunks_.begin()->second->slots.step)) {
    job.chunk = std::move(chunks_.begin()->second);
    chunks_.erase(chunks_.begin());
    delivery_.open(*job.chunk->slots.step);
  }
  if (job) job.token = active_.begin();
  return job;
}

bool Decoding::has_open_work() const {
  return !units_.empty() || (!rows_.empty() && rows_.front().step->is_open()) ||
         (!chunks_.empty() && chunks_.begin()->second->slots.step->is_open());
}

bool Decoding::plan_rows() {
  if (!work_.by_rows() || stopping_) return false;
  const uint64_t seen = changes_;
  --waiting_;
  mu_.unlock();
  const bool planned = scheduler_->plan_now();
  mu_.lock();
  ++waiting_;
  return planned || changes_ != seen;
}

void Decoding::run() {
  std::vector<Buffer> warm;  // what this thread reads late goes where its cache has room already
  SampleContext context;
  context.part<Away>().listener = this;
  RowFiller filler(work_);
  while (true) {
    Job job;
    {
      MutexLock lock(mu_);
      const Stopwatch idle;
      ++waiting_;
      while (!closing_ && !(job = next_job()))
        if (!plan_rows()) wakes_.wait(mu_);
      --waiting_;
      if (closing_) return;
      // This one may have opened a step that others waited for.
      if (has_open_work()) wake_one();
      counters_.decode.waited_for_input(idle.ns());
    }
    if (job.unit)
      decode_unit_now(job.unit);
    else if (pass_over(job))
      continue;
    else if (job.rows.step && work_.makes_rows())
      make_rows(job.rows);
    else if (job.rows.step)
      decode_rows(job.rows, filler);
    else if (!job.chunk->is_late || scheduler_->read_late(job.chunk, warm))
      decode(job.chunk, warm, context);
  }
}

// The slots of a step that has failed because there is no memory for its columns count as filled.
bool Decoding::pass_over(const Job& job) {
  const SlotRange slots = job.chunk ? job.chunk->slots : job.rows;
  if (!slots.step->lacks_columns()) return false;
  if (job.chunk) scheduler_->recycle(job.chunk);
  if (slots.step->slots_done(slots.count)) delivery_.filled(slots.step);
  return true;
}

void Decoding::decode_unit_now(const UnitPointer& unit) {
  const Stopwatch watch;
  const uint64_t stored = unit->stored ? unit->stored->size() : 0;
  const Span span(Stage::kOpen, 0, stored);
  decode_unit(*unit, memory_.units());
  counters_.decode.work(0, stored, watch.ns());
  memory_.units().finish(unit);
}

void Decoding::decode(const ChunkPointer& chunk, std::vector<Buffer>& warm,
                      SampleContext& context) {
  const Stopwatch watch;
  const SlotRange slots = chunk->slots;
  PlannedStep& step = *slots.step;
  size_t done = 0;
  uint64_t bytes = 0;
  {
    const Span span(Stage::kDecode, step.number(), chunk->sample_bytes);
    for (size_t i = 0; i < slots.count; ++i) {
      const size_t slot = slots.first + i;
      Status status = chunk->needs[i];
      if (status.ok()) status = guard([&] { return decode_slot(*chunk, i, context, bytes); });
      bool replaced = false;
      if (!status.ok()) {
        status = work_.explain(std::move(status), step.tasks()[slot]);
        status = replace(slots, slot, status, replaced);
      }
      if (!status.ok()) step.fail(slot, std::move(status));
      if (!replaced) ++done;
    }
  }
  step.count_memory();
  if (chunk->is_late) chunk->gather.take_back(warm);
  scheduler_->recycle(chunk);
  counters_.decode.work(slots.count, bytes, watch.ns());
  if (done > 0 && step.slots_done(done)) delivery_.filled(slots.step);
}

void Decoding::decode_rows(const SlotRange& slots, RowFiller& filler) {
  const Stopwatch watch;
  PlannedStep& step = *slots.step;
  size_t done = slots.count;
  const auto bad = [&](size_t slot, Status why) {
    bool replaced = false;
    why = replace(slots, slot, work_.explain(std::move(why), step.tasks()[slot]), replaced);
    if (replaced) --done;
    if (!why.ok()) step.fail(slot, std::move(why));
  };
  const Result<bool> filled = guard([&]() -> Result<bool> {
    const Span span(Stage::kDecode, step.number(), slots.count);
    return filler.fill(slots, bad);
  });
  if (filled.ok() && !filled.value()) {
    scheduler_->read_instead(slots);
    return;
  }
  if (!filled.ok()) step.fail(slots.first, filled.status());
  step.count_memory();
  counters_.read.work(slots.count, filler.bytes_filled(), 0);
  counters_.decode.work(slots.count, filler.bytes_filled(), watch.ns());
  if (done > 0 && step.slots_done(done)) delivery_.filled(slots.step);
}

// Those of each source are handed over to it, and come back to rows_made().
void Decoding::make_rows(const SlotRange& slots) {
  PlannedStep& step = *slots.step;
  for (uint32_t k = 0; k < work_.sources.size(); ++k) {
    RowsToMake rows;
    for (size_t slot = slots.first; slot < slots.first + slots.count; ++slot) {
      if (step.tasks()[slot].source != k) continue;
      rows.samples.push_back(step.tasks()[slot].sample);
      rows.slots.push_back(static_cast<uint32_t>(slot));
    }
    if (rows.samples.empty()) continue;
    for (size_t c = 0; c < work_.rows[k].size(); ++c) {
      const MutableBytes all = step.column(c).dense();
      rows.columns.push_back({work_.rows[k][c].field, all, all.size() / step.tasks().size()});
    }
    rows.priority = step.number();
    rows.group = scheduler_->read_group();
    // The token ends last: until then nothing that the step holds outlives the engine.  (A plain
    // capture of a const reference would be const, and could not be moved out of the function.)
    rows.done = [this, slots = slots, token = std::make_shared<WorkCount::Token>(active_.begin()),
                 begin = steady_ns()](RowsToMake&& made) mutable {
      const std::shared_ptr<WorkCount::Token> last = std::move(token);
      const SlotRange own = std::move(slots);
      rows_made(own, std::move(made), begin);
    };
    work_.makers[k]->make_rows(std::move(rows));
  }
}

void Decoding::rows_made(const SlotRange& slots, RowsToMake&& rows, uint64_t begin_ns) {
  PlannedStep& step = *slots.step;
  uint64_t bytes = 0;
  for (const RowsToMake::Column& column : rows.columns) bytes += column.bytes * rows.samples.size();
  record_span(Stage::kRead, begin_ns, steady_ns(), step.number(), bytes);
  size_t done = rows.samples.size();
  for (auto& [i, why] : rows.failed) {
    const size_t slot = rows.slots[i];
    bool replaced = false;
    why = replace(slots, slot, work_.explain(std::move(why), step.tasks()[slot]), replaced);
    if (replaced) --done;
    if (!why.ok()) step.fail(slot, std::move(why));
  }
  step.count_memory();
  counters_.read.work(rows.samples.size(), bytes, 0);
  counters_.decode.work(rows.samples.size(), bytes, 0);
  if (done > 0 && step.slots_done(done)) delivery_.filled(slots.step);
}

Status Decoding::decode_slot(Chunk& chunk, size_t i, SampleContext& context, uint64_t& bytes) {
  const size_t slot = chunk.slots.first + i;
  PlannedStep& step = *chunk.slots.step;
  const Task& task = step.tasks()[slot];
  const SourceWork& source = work_.sources[task.source];
  context.begin(work_.draws_of(task), task.epoch, task.sample, task.source, chunk.gather.key(i));
  context.set_stays_on_cpu(step.stays_on_cpu());
  const std::vector<size_t>& together = work_.assembled[task.source];
  if (!together.empty()) HEADRACE_TRY(assemble_slot(chunk, i, together, bytes));
  for (size_t c = 0; c < work_.columns.size(); ++c) {
    if (std::binary_search(together.begin(), together.end(), c)) continue;
    const ColumnWork& column = work_.columns[c];
    if (column.presence_of) {
      HEADRACE_TRY(note_presence(chunk, i, *column.presence_of, step.column(c)));
      continue;
    }
    const ValueWork value{*source.decoders[c], column.spec, source.fields[c], source.absent_of(c)};
    if (source.fields[c] == kKeyField) {
      ColumnSlot out(step.column(c), slot);
      const Bytes key[] = {as_bytes(chunk.gather.key(i))};
      if (Status s = value.decoder.run(key, context, out); !s.ok())
        return s.with(fmt::format("field '{}'", column.spec.name));
      continue;
    }
    const size_t place = work_.asks[task.source].place[c];
    if (place == EngineWork::kNowhere) {
      HEADRACE_TRY(fill_absent(value, context, step.column(c), slot));
      continue;
    }
    HEADRACE_TRY(decode_values(value, *source.source, chunk.gather, i, place, context,
                               step.column(c), slot, bytes));
  }
  return {};
}

// Whether the sample has a value of column `of`.
Status Decoding::note_presence(const Chunk& chunk, size_t i, size_t of, ColumnBuilder& column) {
  const size_t slot = chunk.slots.first + i;
  const uint32_t source = chunk.slots.step->tasks()[slot].source;
  const size_t place = work_.asks[source].place[of];
  const bool is_key = work_.sources[source].fields[of] == kKeyField;
  HEADRACE_ASSIGN(const MutableBytes room, column.room(slot, {}));
  const bool is_there =
      is_key || (place != EngineWork::kNowhere && chunk.gather.values(i, place) > 0);
  room[0] = std::byte{is_there};
  return {};
}

Status Decoding::assemble_slot(Chunk& chunk, size_t i, const std::vector<size_t>& together,
                               uint64_t& bytes) {
  PlannedStep& step = *chunk.slots.step;
  const size_t slot = chunk.slots.first + i;
  const SourceWork& source = work_.sources[step.tasks()[slot].source];
  std::vector<AssembledColumn> columns;
  for (const size_t c : together)
    columns.push_back({{*source.decoders[c], work_.columns[c].spec, source.fields[c]},
                       work_.asks[step.tasks()[slot].source].place[c],
                       &step.column(c)});
  return assemble_values(columns, chunk.gather, i, slot, bytes);
}

// Puts another sample in the place of a bad one.  Returns what to tell the consumer when
// that may not be: storage errors, policy "raise", an exhausted budget or pool.
Status Decoding::replace(const SlotRange& slots, size_t slot, const Status& why, bool& replaced) {
  PlannedStep& step = *slots.step;
  if (step.is_dropped()) return why;  // nobody will see it
  HEADRACE_TRY(bad_.note(step.tasks()[slot], step.epoch(), why));
  Task substitute;
  if (!planner_.substitute(step.planned(slot), slots.attempt + 1, substitute))
    return why.with("no good sample is left to replace this one");
  step.replace(slot, substitute);
  replaced = true;
  scheduler_->add_first({slots.step, slot, 1, slots.attempt + 1});
  return {};
}

}  // namespace headrace
