// SPDX-License-Identifier: Apache-2.0
//
// Decoding: what was read, into its slots.  Compute threads take, in this order: a unit that waits
// to be decoded (others wait for it), then the chunk that comes first in plan order, if its step
// has slots or may have them now.
//
// Who wakes them: add() (something to take), wake() (a batch was taken: more steps may have slots),
// stop().  A thread that ends a chunk looks again by itself, and one that takes a chunk wakes the
// next where there is more.
//
// Where functions run in processes, no more threads take work than CoreShare says, those not
// counted that wait for a process; at least one may always, and who leaves for a process wakes
// another.
//
// Of samples that are rows (rows.h) there are no chunks: slots come as they were planned, and a
// thread that finds none plans the next step itself, without the lock.  Whatever happens meanwhile
// that could give it work, and close(), counts changes_, so that it looks again before it waits.
#pragma once

#include <deque>
#include <map>

#include "base/mutex.h"
#include "codec/away.h"
#include "engine/bad_samples.h"
#include "engine/chunk.h"
#include "engine/core_share.h"
#include "engine/delivery.h"
#include "engine/planner.h"
#include "engine/rows.h"

namespace headrace {

class ReadScheduler;

// Thread-safe.
class Decoding final : private AwayFromCpu {
 public:
  Decoding(const EngineWork& work, Memory& memory, EngineCounters& counters, WorkCount& active,
           Delivery& delivery, Planner& planner, BadSampleLog& bad);
  void connect(ReadScheduler* scheduler) { scheduler_ = scheduler; }

  // All that the chunk needs was read, or is to be read late.
  void add(const ChunkPointer& chunk) HEADRACE_EXCLUDES(mu_);
  // Slots of rows, as planned.
  void add(SlotRange rows) HEADRACE_EXCLUDES(mu_);
  // The unit was read and has to be decoded.
  void add(const UnitPointer& unit) HEADRACE_EXCLUDES(mu_);
  void wake() HEADRACE_EXCLUDES(mu_);

  void run() HEADRACE_EXCLUDES(mu_);  // a compute thread's life
  void start() HEADRACE_EXCLUDES(mu_);
  void stop() HEADRACE_EXCLUDES(mu_);   // gives up what waits
  void drop() HEADRACE_EXCLUDES(mu_);   // gives up what waits of steps that were dropped
  void close() HEADRACE_EXCLUDES(mu_);  // run() returns

 private:
  struct Job {
    WorkCount::Token token;  // ends last: then the rest is given back
    ChunkPointer chunk;
    UnitPointer unit;
    SlotRange rows;
    explicit operator bool() const { return chunk || unit || rows.step; }
  };
  Job next_job() HEADRACE_REQUIRES(mu_);
  bool pass_over(const Job& job) HEADRACE_EXCLUDES(mu_);
  bool may_run_more() const HEADRACE_REQUIRES(mu_);
  void leave() override HEADRACE_EXCLUDES(mu_);
  void come_back(uint64_t busy_ns) override HEADRACE_EXCLUDES(mu_);
  bool has_work() const HEADRACE_REQUIRES(mu_) {
    return !units_.empty() || !chunks_.empty() || !rows_.empty();
  }
  bool has_open_work() const HEADRACE_REQUIRES(mu_);
  bool rows_come_first() const HEADRACE_REQUIRES(mu_);
  bool plan_rows() HEADRACE_REQUIRES(mu_);  // without the lock meanwhile; false: nothing to gain
  void wake_one() HEADRACE_REQUIRES(mu_);
  void decode_unit_now(const UnitPointer& unit);
  void decode(const ChunkPointer& chunk, std::vector<Buffer>& warm, SampleContext& context);
  void decode_rows(const SlotRange& slots, RowFiller& filler);
  void make_rows(const SlotRange& slots);
  void rows_made(const SlotRange& slots, RowsToMake&& rows, uint64_t begin_ns);
  Status decode_slot(Chunk& chunk, size_t i, SampleContext& context, uint64_t& bytes);
  Status note_presence(const Chunk& chunk, size_t i, size_t of, ColumnBuilder& column);
  Status assemble_slot(Chunk& chunk, size_t i, const std::vector<size_t>& together,
                       uint64_t& bytes);
  Status replace(const SlotRange& slots, size_t slot, const Status& why, bool& replaced);

  const EngineWork& work_;
  Memory& memory_;
  EngineCounters& counters_;
  WorkCount& active_;
  Delivery& delivery_;
  Planner& planner_;
  BadSampleLog& bad_;
  ReadScheduler* scheduler_ = nullptr;

  Mutex mu_;
  CondVar wakes_;
  std::deque<UnitPointer> units_ HEADRACE_GUARDED_BY(mu_);
  std::map<PlanOrder, ChunkPointer> chunks_ HEADRACE_GUARDED_BY(mu_);
  std::deque<SlotRange> rows_ HEADRACE_GUARDED_BY(mu_);  // in plan order
  uint64_t changes_ HEADRACE_GUARDED_BY(mu_) = 0;
  const int most_awake_;                      // threads that are worth waking
  int waiting_ HEADRACE_GUARDED_BY(mu_) = 0;  // threads
  CoreShare share_ HEADRACE_GUARDED_BY(mu_);
  bool stopping_ HEADRACE_GUARDED_BY(mu_) = true;
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
};

}  // namespace headrace
