// SPDX-License-Identifier: Apache-2.0
//
// Decoding: from the bytes of a chunk into its slots; bad samples and their substitutes.
#include <fmt/format.h>

#include "base/guard.h"
#include "engine/core.h"
#include "engine/values.h"

namespace headrace {

void Engine::Core::compute_thread() {
  std::vector<Buffer> warm;  // what this thread reads late goes where its cache has room already
  SampleContext context;
  while (true) {
    Job job;
    {
      MutexLock lock(mu_);
      const Stopwatch idle;
      while (!closing_ && to_decode_.empty()) compute_wakes_.wait(mu_);
      if (closing_) return;
      decoded_.waited_for_input(idle.ns());
      job = std::move(to_decode_.begin()->second);
      to_decode_.erase(to_decode_.begin());
      ++active_;
    }
    if (job.unit)
      decode_unit(job.unit);
    else if (!job.chunk->is_late || read_late(job.chunk, warm))
      decode(job.chunk, warm, context);
    MutexLock lock(mu_);
    work_done();
  }
}

void Engine::Core::decode(const ChunkPtr& chunk, std::vector<Buffer>& warm,
                          SampleContext& context) {
  const Stopwatch watch;
  const Errand errand = chunk->errand;
  size_t done = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < errand.count; ++i) {
    const size_t slot = errand.first + i;
    Status status = chunk->needs[i];
    if (status.ok()) status = guard([&] { return decode_slot(*chunk, i, context, bytes); });
    bool replaced = false;
    if (!status.ok()) {
      status = explain(std::move(status), errand.flight->tasks()[slot]);
      status = replace(errand, slot, status, replaced);
    }
    if (!status.ok()) errand.flight->fail(slot, std::move(status));
    if (!replaced) ++done;
  }
  if (chunk->is_late) chunk->gather.take_back(warm);
  {
    MutexLock lock(mu_);
    drop(chunk);
  }
  decoded_.work(errand.count, bytes, watch.ns());
  if (done > 0) slots_done(errand.flight, done);
}

Status Engine::Core::decode_slot(Chunk& chunk, size_t i, SampleContext& context, uint64_t& bytes) {
  const size_t slot = chunk.errand.first + i;
  Flight& flight = *chunk.errand.flight;
  const Task& task = flight.tasks()[slot];
  const SourceWork& source = sources_[task.source];
  context.begin(draws_of(task), task.epoch, task.sample, task.source, chunk.gather.key(i));
  for (size_t c = 0; c < columns_.size(); ++c) {
    const ColumnWork& work = columns_[c];
    const ValueWork value{*source.decoders[c], work.spec, source.fields[c]};
    if (work.is_key) {
      ColumnSlot out(flight.column(c), slot);
      const Bytes key = as_bytes(chunk.gather.key(i));
      if (Status s = value.decoder.run({&key, 1}, context, out); !s.ok())
        return s.with(fmt::format("field '{}'", work.spec.name));
      continue;
    }
    HEADRACE_TRY(decode_values(value, *source.source, chunk.gather, i, c, context, flight.column(c),
                               slot, bytes));
  }
  return {};
}

void Engine::Core::decode_unit(const std::shared_ptr<SharedUnit>& unit) {
  const Stopwatch watch;
  const uint64_t before = unit->stored.size();
  if (unit->status.ok() && unit->unit.encoding != 0)
    unit->status = guard(
        [&] { return unit->source->decode_unit(unit->unit, unit->stored.bytes(), unit->opened); });
  if (!unit->status.ok()) unit->status = unit->status.at(unit->unit.offset).in_file(unit->path);
  if (unit->unit.encoding != 0) unit->stored = Buffer();
  decoded_.work(0, before, watch.ns());
  {
    // What it was thought to take was counted; what it takes is given back when it is evicted.
    MutexLock lock(mu_);
    used_ -= std::min(used_, unit->expected_bytes());
    if (unit->status.ok()) take_memory(unit->bytes().size());
  }
  units_.finish(unit);
}

// Puts another sample in the place of a bad one.  Returns what to tell the consumer when
// that may not be: storage errors, policy "raise", an exhausted budget or pool.
Status Engine::Core::replace(const Errand& errand, size_t slot, const Status& why, bool& replaced) {
  if (why.code() != Code::kCorrupt || !options_.bad_samples.replace) return why;
  Flight& flight = *errand.flight;
  const Task bad = flight.tasks()[slot];
  {
    MutexLock lock(mu_);
    replaced_.erase(replaced_.begin(),
                    replaced_.lower_bound(flight.epoch() > 1 ? flight.epoch() - 1 : 0));
    auto& known = replaced_[flight.epoch()];
    if (known.emplace(bad.source, bad.sample)
            .second) {  // once, even when it was tried as a substitute too
      if (known.size() > options_.bad_samples.budget)
        return Status(why.code(),
                      fmt::format("more than {} bad samples in this epoch, the last: {}",
                                  options_.bad_samples.budget, why.text()));
      quarantine_.push_back({bad.sample, bad.source, flight.epoch(), why.place().file,
                             why.place().offset, why.place().key, std::string(why.message())});
    }
  }
  Task substitute;
  {
    MutexLock lock(feed_mu_);
    if (!feed_ || !feed_->substitute(flight.planned(slot), errand.attempt + 1, substitute))
      return why.with("no good sample is left to replace this one");
  }
  flight.task(slot) = substitute;
  MutexLock lock(mu_);
  if (stopping_) return cancelled("the epoch was ended");
  to_fetch_.push_front({errand.flight, slot, 1, errand.attempt + 1});
  io_wakes_.notify_all();
  replaced = true;
  return {};
}

void Engine::Core::slots_done(const std::shared_ptr<Flight>& flight, size_t n) {
  if (!flight->slots_done(n)) return;
  const Stopwatch watch;
  const uint64_t before = flight->bytes();
  const Status packed = guard([&]() -> Status {
    flight->finish();
    if (!options_.batch_step || !flight->status().ok() || flight->tasks().empty()) return {};
    const Key draws = draws_of(flight->tasks().front()).with("batch");
    return flight->apply(*options_.batch_step, draws, *pool_);
  });
  if (!packed.ok()) flight->fail(0, packed);
  packed_.work(1, flight->bytes(), watch.ns());
  MutexLock lock(mu_);
  if (stopping_) return;
  used_ -= std::min(used_, before);
  take_memory(flight->bytes());
  ready_.insert(flight->sequence());
  consumer_wakes_.notify_all();
  if (!consumer_waits_ && !watched_ && head_is_ready()) io_wakes_.notify_one();  // to watch
}

}  // namespace headrace
