// SPDX-License-Identifier: Apache-2.0
//
// Decoding: what was read, into its slots.  Compute threads take, in this order: a unit that waits
// to be decoded (others wait for it), then the chunk that comes first in plan order, if its step
// has slots or may have them now.
//
// Who wakes them: add() (something to take), wake() (a batch was taken: more steps may have slots),
// stop().  A thread that ends a chunk looks again by itself, and one that takes a chunk wakes the
// next where there is more.
#pragma once

#include <deque>
#include <map>

#include "base/mutex.h"
#include "engine/bad_samples.h"
#include "engine/chunk.h"
#include "engine/delivery.h"
#include "engine/planner.h"

namespace headrace {

class ReadScheduler;

// Thread-safe.
class Decoding {
 public:
  Decoding(const EngineWork& work, Memory& memory, EngineCounters& counters, WorkCount& active,
           Delivery& delivery, Planner& planner, BadSampleLog& bad);
  void connect(ReadScheduler* scheduler) { scheduler_ = scheduler; }

  // All that the chunk needs was read, or is to be read late.
  void add(const ChunkPointer& chunk) HEADRACE_EXCLUDES(mu_);
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
    explicit operator bool() const { return chunk || unit; }
  };
  Job next_job() HEADRACE_REQUIRES(mu_);
  bool has_open_work() const HEADRACE_REQUIRES(mu_);
  void wake_one() HEADRACE_REQUIRES(mu_);
  void decode_unit_now(const UnitPointer& unit);
  void decode(const ChunkPointer& chunk, std::vector<Buffer>& warm, SampleContext& context);
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
  const int most_awake_;                      // threads that are worth waking
  int waiting_ HEADRACE_GUARDED_BY(mu_) = 0;  // threads
  bool stopping_ HEADRACE_GUARDED_BY(mu_) = true;
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
};

}  // namespace headrace
