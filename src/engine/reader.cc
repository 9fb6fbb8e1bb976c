// SPDX-License-Identifier: Apache-2.0
#include "engine/reader.h"

#include <algorithm>
#include <set>

#include "base/guard.h"
#include "base/machine.h"
#include "base/prefault.h"
#include "engine/decoding.h"
#include "engine/read_now.h"
#include "engine/run_parts.h"
#include "storage/first_batch.h"
#include "trace/spans.h"

namespace headrace {
namespace {

constexpr uint64_t kNominalFile = 128 << 10;  // a plain file of unknown size, until some were seen
// Reads of whole units from here on get their pages before they are sent.
constexpr uint64_t kFreshBytes = 1 << 20;
// With fewer processors those that send and receive wait for it, and the requests behind it.
constexpr int kEnoughProcessors = 4;
constexpr int kReadEarly = 256;  // chunks that are read ahead after one was not in the page cache

// The requests of a unit that are under way, and the first failure among them.  Thread-safe.
class ReadsLeft {
 public:
  explicit ReadsLeft(size_t reads) : left_(reads) {}

  // Whether this was the last one to complete.
  bool is_last(Status status) {
    MutexLock lock(mu_);
    if (status_.ok()) status_ = std::move(status);
    return --left_ == 0;
  }
  Status status() const {
    MutexLock lock(mu_);
    return status_;
  }

 private:
  mutable Mutex mu_;
  size_t left_ HEADRACE_GUARDED_BY(mu_);
  Status status_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

Reader::Reader(const EngineWork& work, Memory& memory, EngineCounters& counters, WorkCount& active)
    : work_(work),
      memory_(memory),
      counters_(counters),
      active_(active),
      has_idle_processors_(usable_cpus() >= kEnoughProcessors) {
  const EngineOptions& o = work.options;
  for (const SourceWork& source : work.sources)
    read_ahead_.push_back(std::make_unique<ReadAhead>(
        o.read_ahead_bytes, most_free_ahead_bytes(o.memory_budget_bytes, source.policy.is_far),
        source.policy.first_bytes));
}

void Reader::start(uint64_t first_step) {
  group_ = std::make_shared<ReadGroup>();
  set_first_batch(group_, first_step);
}

void Reader::cancel() {
  group_->cancel();
  std::set<const Store*> stores;
  for (const SourceWork& source : work_.sources) stores.insert(&source.source->store());
  for (const Store* store : stores) store->cancel(*group_);
}

void Reader::set_read_ahead(uint64_t least_bytes, uint64_t budget_bytes) {
  for (size_t k = 0; k < read_ahead_.size(); ++k)
    read_ahead_[k]->set_limits(least_bytes,
                               most_free_ahead_bytes(budget_bytes, work_.sources[k].policy.is_far));
}

uint64_t Reader::nominal_file() const {
  const uint64_t files = whole_files_.load(std::memory_order_relaxed);
  return files > 0 ? whole_file_bytes_.load(std::memory_order_relaxed) / files : kNominalFile;
}

void Reader::note_whole_file(uint64_t bytes) {
  whole_file_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  whole_files_.fetch_add(1, std::memory_order_relaxed);
}

void Reader::resolve(Chunk& chunk, bool by_runs) {
  const Stopwatch watch;
  const SlotRange& slots = chunk.slots;
  const Span span(Stage::kResolve, slots.step->number(), chunk.sample_bytes);
  const GatherOptions options{.runs = by_runs,
                              .pool = work_.hands_over ? &memory_.pool() : nullptr};
  const Status asked = guard([&]() -> Status {
    ask_index(chunk);
    chunk.gather.resolve(options, &memory_.units());
    if (!work_.is_far) chunk.gather.merge(options);
    return {};
  });
  if (!asked.ok()) chunk.needs.assign(slots.count, asked);
  // One more stands for its grant.
  chunk.pending.store((work_.is_far ? chunk.gather.wants().size() : chunk.gather.ranges_to_read()) +
                          chunk.gather.shared_units().size() + 1,
                      std::memory_order_relaxed);
  counters_.resolve.work(slots.count, 0, watch.ns());
}

void Reader::ask_index(Chunk& chunk) {
  const SlotRange& slots = chunk.slots;
  chunk.gather.clear();
  chunk.needs.clear();
  for (size_t i = 0; i < slots.count; ++i) {
    const Task& task = slots.step->tasks()[slots.first + i];
    const SourceWork& work = work_.sources[task.source];
    const SampleAsk ask{.sample = task.sample,
                        .epoch = task.epoch,
                        .fields = work_.asks[task.source].fields,
                        .draws = work_.draws_of(task),
                        .epoch_draws = work_.epoch_draws_of(task),
                        .want_key = work_.wants_key};
    chunk.needs.push_back(chunk.gather.add(*work.source, ask, work.policy, task.source));
  }
}

// Where the last ones lay in the page cache, this one is thought to.
bool Reader::submit_late(const ChunkPointer& chunk) {
  const Gather& gather = chunk->gather;
  if (work_.is_far || chunk->is_late || (work_.is_light && !gather.decodes())) return false;
  if (gather.ranges_to_read() == 0 || !gather.shared_units().empty()) return false;
  for (const RangePointer& range : gather.ranges())
    if (!work_.sources[range->source_number].policy.late) return false;
  if (read_early_.load(std::memory_order_relaxed) > 0) {
    read_early_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  chunk->is_late = true;
  decoding_->add(chunk);
  return true;
}

bool Reader::read_late(Chunk& chunk, std::vector<Buffer>& warm) {
  const Stopwatch watch;
  const Span span(Stage::kRead, chunk.slots.step->number(), chunk.sample_bytes);
  chunk.gather.lend(warm);
  bool is_resident = true;
  for (const RangePointer& range : chunk.gather.ranges()) {
    if (range->resident) continue;
    ReadRequest request;
    request.path = range->path;
    request.offset = range->offset;
    request.length = range->length;
    request.into = std::move(range->into());
    // Whatever is thrown here, the I/O thread meets it too and says it.
    const Status tried = guard([&]() -> Status {
      is_resident = range->source->store().read_if_resident(request);
      return {};
    });
    range->into() = std::move(request.into);
    is_resident = is_resident && tried.ok();
    if (!is_resident) break;
    counters_.read.work(1, range->bytes().size(), 0);
    if (range->length == kWholeFile) note_whole_file(range->bytes().size());
  }
  counters_.read.work(0, 0, watch.ns());
  if (!is_resident) read_early_.store(kReadEarly, std::memory_order_relaxed);
  return is_resident;
}

void Reader::note_cold_rows() {
  read_early_.store(kReadEarly, std::memory_order_relaxed);
}

void Reader::submit(const ChunkPointer& chunk, std::span<const RangePointer> ranges) {
  const Stopwatch watch;
  const uint64_t step = chunk->slots.step->number();
  if (!work_.is_far)
    for (const RangePointer& range : ranges)
      if (!range->resident) range->waiting.emplace_back(chunk, 1);
  for (const UnitPin& pin : chunk->gather.shared_units()) {
    bool must_read = false;
    const bool later =
        memory_.units().when_ready(pin.unit(), must_read, [this, chunk] { arrived(chunk, 1); });
    if (must_read) read_unit(pin.unit(), number_of(pin->source), *chunk);
    if (!later) arrived(chunk, 1);
  }
  read_ranges(ranges, step);
  counters_.read.work(0, 0, watch.ns());
  arrived(chunk, 1);  // its grant
}

void Reader::read_ranges(std::span<const RangePointer> ranges, uint64_t step) {
  std::vector<ReadRequest> reads;
  std::vector<const Store*> stores;
  for (const RangePointer& range : ranges) {
    if (range->resident) {
      counters_.read.work(1, range->bytes().size(), 0);
      continue;
    }
    // Its memory is taken when its bytes come: what was let go last.
    if (work_.is_far && !range->shared) range->shared = memory_.pool().take_later();
    range->under_way = active_.begin();
    stores.push_back(&range->source->store());
    ReadRequest& request = reads.emplace_back();
    request.path = range->path;
    request.offset = range->offset;
    request.length = range->length;
    request.into = std::move(range->into());
    request.priority = step;
    request.group = group_;
    // The token ends last: until then nothing that these pointers hold outlives the engine.
    request.done = [this, range = range, step](ReadRequest&& done) mutable {
      const WorkCount::Token token = std::move(range->under_way);
      const RangePointer own = std::move(range);
      record_span(Stage::kRead, done.sent_ns, done.completed_ns, step, done.bytes_read());
      range_done(*own, std::move(done));
    };
  }
  counters_.under_way(static_cast<int64_t>(reads.size()));
  read_by_store(reads, stores);
}

void Reader::range_done(ReadRange& range, ReadRequest&& request) {
  note_read(range.source_number, request);
  range.status = std::move(request.status);
  range.into() = std::move(request.into);
  if (range.length == kWholeFile && range.status.ok()) {
    note_whole_file(range.bytes().size());
    range.memory.resize(range.bytes().size());
    range.reading.resize(range.bytes().size());
  }
  const auto waiting = std::move(range.waiting);
  for (const auto& [chunk, n] : waiting) arrived(chunk, n);
}

void Reader::note_read(uint32_t source, const ReadRequest& request) {
  counters_.under_way(-1);
  counters_.read.work(1, request.bytes_read(), 0);
  counters_.read_latency.add(request.completed_ns - request.sent_ns);
  if (request.status.ok())
    read_ahead_[source]->completed(request.bytes_read(), request.sent_ns, request.completed_ns);
}

uint32_t Reader::number_of(const Source* source) const {
  for (uint32_t k = 0; k < work_.sources.size(); ++k)
    if (work_.sources[k].source.get() == source) return k;
  return 0;
}

// `first`: the chunk that needs it before all others.
void Reader::read_unit(const UnitPointer& unit, uint32_t source, Chunk& first) {
  const uint64_t bytes = unit->unit.stored_bytes;
  const ReadPolicy& policy = work_.sources[source].policy;
  unit->under_way = active_.begin();
  unit->reading = memory_.stored(source).take(bytes == kWholeFile ? nominal_file() : bytes);
  // A run waits to be decoded as a range does: until then it is part of the read-ahead, or runs
  // would be read until the budget is full.
  if (policy.is_far && unit->unit.encoding == 0)
    first.first_runs.push_back(std::move(unit->reading));
  const bool may_be_fresh = work_.is_far && !policy.in_caller && has_idle_processors_ &&
                            bytes >= kFreshBytes && bytes != kWholeFile;
  // A caller that waits would have its requests one after the other.
  const uint64_t most_bytes = policy.in_caller ? bytes : policy.most_bytes;
  const std::vector<PartsOfRead> reads = reads_of_parts(unit->parts, most_bytes);
  const auto left = std::make_shared<ReadsLeft>(reads.size());
  std::vector<ReadRequest> requests;
  requests.reserve(reads.size());
  for (const PartsOfRead& read : reads) {
    ReadRequest& request = requests.emplace_back(request_of(*unit, read, may_be_fresh));
    request.priority = first.slots.step->number();
    request.done = [this, unit = unit, source, read, left](ReadRequest&& done) mutable {
      const WorkCount::Token token = active_.begin();  // ends last, as above
      const UnitPointer own = std::move(unit);
      record_span(Stage::kRead, done.sent_ns, done.completed_ns, done.priority, done.bytes_read());
      note_read(source, done);
      if (own->stored) *own->stored = std::move(done.into);
      for (size_t k = 0; k < read.count; ++k)
        *own->parts[read.first + k].memory = std::move(done.pieces[k].into);
      if (left->is_last(std::move(done.status))) unit_read(own, left->status());
    };
  }
  counters_.under_way(static_cast<int64_t>(requests.size()));
  unit->source->store().read(requests);
}

// Of a unit that is read in parts: for some of them.
ReadRequest Reader::request_of(SharedUnit& unit, const PartsOfRead& read, bool may_be_fresh) {
  ReadRequest request;
  request.path = unit.path;
  request.offset = unit.unit.offset;
  request.length = unit.unit.stored_bytes;
  request.group = group_;
  if (read.count == 0)
    give_memory(unit, may_be_fresh, request);
  else
    give_pieces(std::span(unit.parts).subspan(read.first, read.count), may_be_fresh, request);
  return request;
}

// All of it came, or failed.
void Reader::unit_read(const UnitPointer& unit, Status status) {
  unit->status = std::move(status);
  unit->reading.reset();
  on_room_();
  if (unit->status.ok() && unit->unit.encoding != 0) {
    decoding_->add(unit);
    return;
  }
  decode_unit(*unit, memory_.units());  // names the place of a failure
  memory_.units().finish(unit);
}

// Fresh pages are cleared here and not by the thread that receives; what was used before is taken
// when the bytes come.
SharedBuffer Reader::take_memory(uint64_t bytes, bool may_be_fresh) {
  SharedBuffer memory = memory_.pool().take_later();
  if (!may_be_fresh || memory_.pool().has_idle(bytes)) return memory;
  // Where there is none the store, which asks again, fails the read.
  const Status taken = guard([&]() -> Status {
    memory->resize(bytes);
    return {};
  });
  if (taken.ok()) prefault(memory->span());
  return memory;
}

void Reader::give_memory(SharedUnit& unit, bool may_be_fresh, ReadRequest& request) {
  unit.stored = take_memory(unit.unit.stored_bytes, may_be_fresh);
  request.into = std::move(*unit.stored);
}

// From the first part to the last: nothing before and behind them is wanted.
void Reader::give_pieces(std::span<RunPart> parts, bool may_be_fresh, ReadRequest& request) {
  const uint64_t first = parts.front().begin;
  request.offset += first;
  request.length = parts.back().begin + parts.back().length - first;
  request.pieces.reserve(parts.size());
  for (RunPart& part : parts) {
    part.memory = take_memory(part.length, may_be_fresh);
    request.pieces.push_back({part.begin - first, part.length, std::move(*part.memory)});
  }
}

void Reader::arrived(const ChunkPointer& chunk, size_t n) {
  if (chunk->pending.fetch_sub(n, std::memory_order_acq_rel) == n) decoding_->add(chunk);
}

}  // namespace headrace
