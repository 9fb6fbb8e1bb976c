// SPDX-License-Identifier: Apache-2.0
//
// Reading: a chunk asks the index what it needs, waits for its grant, reads.
#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "engine/core.h"

namespace headrace {
namespace {

constexpr uint64_t kNominalFile = 128 << 10;  // a plain file of unknown size, until some were seen
constexpr int kReadEarly = 256;  // chunks that are read ahead after one was not in the page cache

}  // namespace

ChunkPtr Engine::Core::begin_chunk(Errand errand) {
  ChunkPtr chunk;
  if (idle_chunks_.empty()) {
    chunk = std::make_shared<Chunk>();
  } else {
    chunk = std::move(idle_chunks_.back());
    idle_chunks_.pop_back();
  }
  chunk->errand = std::move(errand);
  return chunk;
}

// Gives the chunk's memory back and the chunk itself to the next errand.
void Engine::Core::drop(const ChunkPtr& chunk) {
  used_ -= std::min(used_, chunk->granted_bytes);
  stored_ -= std::min(stored_, chunk->granted_bytes);
  chunk->granted_bytes = 0;
  chunk->gather.clear();
  chunk->needs.clear();
  chunk->reads.clear();
  chunk->errand = {};
  chunk->is_late = false;
  idle_chunks_.push_back(chunk);
  // Woken for a quarter of the read-ahead at a time, not for every picture.
  if (!parked_.empty() && stored_ <= options_.read_ahead_bytes / 4 * 3) io_wakes_.notify_one();
}

void Engine::Core::ask(const ChunkPtr& chunk) {
  const Stopwatch watch;
  const uint64_t files = whole_files_.load(std::memory_order_relaxed);
  const uint64_t nominal =
      files > 0 ? whole_file_bytes_.load(std::memory_order_relaxed) / files : kNominalFile;
  const Status asked = guard([&]() -> Status {
    ask_index(*chunk);
    chunk->gather.plan_reads({.runs = options_.read_runs,
                              .pool = hands_over_ ? pool_.get() : nullptr,
                              .nominal = nominal},
                             &units_);
    return {};
  });
  if (!asked.ok()) chunk->needs.assign(chunk->errand.count, asked);
  chunk->wanted_bytes = chunk->gather.bytes_to_read(nominal);
  read_.work(0, 0, watch.ns());
  MutexLock lock(mu_);
  if (stopping_)
    drop(chunk);
  else
    parked_.emplace(chunk->errand.order(), chunk);
  work_done();
}

void Engine::Core::ask_index(Chunk& chunk) {
  const Errand& errand = chunk.errand;
  chunk.gather.clear();
  chunk.needs.clear();
  for (size_t i = 0; i < errand.count; ++i) {
    const Task& task = errand.flight->tasks()[errand.first + i];
    const SourceWork& work = sources_[task.source];
    chunk.needs.push_back(
        chunk.gather.add(*work.source, task.sample, work.fields, draws_of(task), wants_key_));
  }
}

bool Engine::Core::may_grant(const Chunk& chunk) {
  // Granted chunks always get through without a further grant, so waiting for them ends.
  const uint64_t bytes = chunk.wanted_bytes;
  if (stored_ > 0 && stored_ + bytes > options_.read_ahead_bytes) return false;
  if (used_ + bytes <= options_.memory_budget_bytes) return true;
  const uint64_t freed = units_.evict(used_ + bytes - options_.memory_budget_bytes);
  used_ -= std::min(used_, freed);
  if (used_ + bytes <= options_.memory_budget_bytes) return true;
  return chunk.errand.flight->sequence() == head();
}

// Where the last ones lay in the page cache, this one is thought to.
bool Engine::Core::may_read_late(const Chunk& chunk) {
  if (!options_.read_late || chunk.is_late || (is_light_ && !chunk.gather.opens())) return false;
  if (chunk.gather.ranges_to_read() == 0) return false;
  if (read_early_.load(std::memory_order_relaxed) > 0) {
    read_early_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  return true;
}

// By the thread that is about to decode.  False: an I/O thread has to, and it comes back.
bool Engine::Core::read_late(const ChunkPtr& chunk, std::vector<Buffer>& warm) {
  const Stopwatch watch;
  chunk->gather.lend(warm);
  bool is_there = true;
  for (ReadRange& range : chunk->gather.ranges()) {
    if (range.there) continue;
    ReadRequest request{.path = range.path,
                        .offset = range.offset,
                        .length = range.length,
                        .into = std::move(range.into())};
    // Whatever is thrown here, the I/O thread meets it too and says it.
    const Status tried = guard([&]() -> Status {
      is_there = range.source->store().read_if_resident(request);
      return {};
    });
    range.into() = std::move(request.into);
    is_there = is_there && tried.ok();
    if (!is_there) break;
    read_.work(1, range.bytes().size(), 0);
    if (range.length == kWholeFile) note_whole_file(range.bytes().size());
  }
  read_.work(0, 0, watch.ns());
  if (is_there) return true;
  read_early_.store(kReadEarly, std::memory_order_relaxed);
  MutexLock lock(mu_);
  if (stopping_) {
    drop(chunk);
  } else {
    to_read_.push_back(chunk);
    io_wakes_.notify_one();
  }
  return false;
}

void Engine::Core::read_ranges(const ChunkPtr& chunk) {
  std::vector<ReadRange>& ranges = chunk->gather.ranges();
  chunk->reads.clear();
  for (ReadRange& range : ranges) {
    if (range.there) {
      read_.work(1, range.bytes().size(), 0);
      continue;
    }
    chunk->reads.push_back({.path = range.path,
                            .offset = range.offset,
                            .length = range.length,
                            .into = std::move(range.into()),
                            .priority = chunk->errand.flight->sequence(),
                            .done = [this, chunk, &range](ReadRequest&& read) {
                              range.status = std::move(read.status);
                              range.into() = std::move(read.into);
                              if (range.length == kWholeFile && range.status.ok())
                                note_whole_file(range.bytes().size());
                              read_.work(1, range.bytes().size(), 0);
                              arrived(chunk);
                            }});
  }
  // To their stores in runs: almost always there is one store.
  std::span<ReadRequest> reads = chunk->reads;
  size_t run = 0;
  const Store* store = nullptr;
  const auto read_run = [&] {
    if (run > 0) store->read(reads.first(run));
    reads = reads.subspan(std::exchange(run, 0));
  };
  for (const ReadRange& range : ranges) {
    if (range.there) continue;
    if (store != &range.source->store()) read_run();
    store = &range.source->store();
    ++run;
  }
  read_run();
}

void Engine::Core::submit(const ChunkPtr& chunk) {
  const Stopwatch watch;
  if (may_read_late(*chunk) && chunk->gather.shared_units().empty()) {
    chunk->is_late = true;
    chunk->pending.store(1, std::memory_order_relaxed);
    arrived(chunk);
    return;
  }
  chunk->is_late = false;
  const auto& units = chunk->gather.shared_units();
  chunk->pending.store(chunk->gather.ranges_to_read() + units.size() + 1,
                       std::memory_order_relaxed);
  for (const auto& unit : units) {
    bool must_read = false;
    const bool later = units_.when_ready(unit, must_read, [this, chunk] { arrived(chunk); });
    if (must_read) read_shared_unit(unit);
    if (!later) arrived(chunk);
  }
  read_ranges(chunk);
  read_.work(0, 0, watch.ns());
  arrived(chunk);  // the one that stood for this function
}

void Engine::Core::note_whole_file(uint64_t bytes) {
  whole_file_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  whole_files_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::Core::read_shared_unit(const std::shared_ptr<SharedUnit>& unit) {
  {
    MutexLock lock(mu_);
    ++active_;
    take_memory(unit->expected_bytes());
  }
  ReadRequest request{.path = unit->path,
                      .offset = unit->unit.offset,
                      .length = unit->unit.stored_bytes,
                      .into = std::move(unit->stored),
                      .done = [this, unit](ReadRequest&& read) {
                        unit->status = std::move(read.status);
                        unit->stored = std::move(read.into);
                        read_.work(1, unit->stored.size(), 0);
                        bool abandon = false;
                        {
                          MutexLock lock(mu_);
                          abandon = stopping_;
                          // Before every chunk: others wait for it.
                          if (!abandon)
                            to_decode_.emplace(std::pair<uint64_t, size_t>{0, 0},
                                               Job{nullptr, unit});
                          compute_wakes_.notify_one();
                        }
                        if (abandon) {
                          if (unit->status.ok()) unit->status = cancelled("the epoch was ended");
                          units_.finish(unit);
                        }
                        MutexLock lock(mu_);
                        work_done();
                      }};
  unit->source->store().read(std::span(&request, 1));
}

void Engine::Core::arrived(const ChunkPtr& chunk) {
  if (chunk->pending.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  MutexLock lock(mu_);
  if (stopping_) {
    drop(chunk);
  } else {
    to_decode_.emplace(chunk->errand.order(), Job{chunk, nullptr});
    compute_wakes_.notify_one();
  }
  work_done();
}

}  // namespace headrace
