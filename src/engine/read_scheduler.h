// SPDX-License-Identifier: Apache-2.0
//
// ReadScheduler: when what is planned, resolved and read.  I/O threads take, in this order:
//
//   read     a chunk that was to be read late and was not in the page cache
//   submit   the first resolved chunk in plan order, once it is granted
//   resolve  the next chunk: what do its samples need?
//   plan     the next step of the feed, one thread at a time; of rows (rows.h) that lie in memory
//            the threads that decode do it
//
// Of far storage some MiB are resolved before anything is submitted, so that neighbours merge.
//
// A grant needs room in the memory budget and, for each source, in its read-ahead: bytes under way
// or waiting to be decoded, from measured latency and rate.  Beyond most_ahead_bytes() no idle
// unit, which may be wanted again, is given up for it.  Why this cannot deadlock:
//   1. Grants go in plan order, and the step at the head is always granted.
//   2. No thread waits with a chunk in its hands; what was granted gets through reading without a
//      further grant.  Chunks of later steps may wait for slots, holding what they hold.
//   3. So the head is read, gets slots (Delivery::may_open), is decoded and delivered; then the
//      next step is the head.
// Why no wake-up is lost: next_job() looks under the lock, and whatever changes what it sees takes
// the lock and notifies afterwards: recycle() (memory came back), add_first() (a substitute),
// add_again() (a step once more), wake() (a batch was taken, a unit was read), plan() (more to
// resolve, or the end), start(), drop() (there is more to plan).
//
// Dropped steps (replan): Delivery marks them first.  Every queue lets go of their chunks under its
// lock, and takes none of them after that.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "engine/chunk.h"
#include "engine/delivery.h"
#include "engine/planner.h"
#include "engine/read_window.h"
#include "engine/reader.h"

namespace headrace {

// Thread-safe.
class ReadScheduler {
 public:
  ReadScheduler(const EngineWork& work, Memory& memory, EngineCounters& counters, WorkCount& active,
                Delivery& delivery, Planner& planner, Reader& reader);

  void connect(Decoding* decoding) { decoding_ = decoding; }
  void run() HEADRACE_EXCLUDES(mu_);  // an I/O thread's life
  void start() HEADRACE_EXCLUDES(mu_);
  void stop() HEADRACE_EXCLUDES(mu_);  // gives up what waits
  // No step is on its way from the feed to its place in Delivery meanwhile.
  Status while_nobody_plans(const std::function<Status()>& work) HEADRACE_EXCLUDES(planning_mu_)
      HEADRACE_EXCLUDES(mu_);
  void drop() HEADRACE_EXCLUDES(mu_);   // gives up what waits of steps that were dropped
  void close() HEADRACE_EXCLUDES(mu_);  // run() returns
  void wake() HEADRACE_EXCLUDES(mu_);

  // A substitute, before all else.
  void add_first(SlotRange slots) HEADRACE_EXCLUDES(mu_);
  // All samples of a step whose slots are to be filled once more, before all else.
  void add_again(const StepPointer& step) HEADRACE_EXCLUDES(mu_);
  // Of rows (rows.h), by a thread that decodes: plans the next step, if it is time.
  bool plan_now() HEADRACE_EXCLUDES(planning_mu_) HEADRACE_EXCLUDES(mu_);
  // Of rows that their source makes: they are given up with the reads of this feed.
  const std::shared_ptr<ReadGroup>& read_group() const { return reader_.group(); }
  // They are not in the page cache: they are read as all other samples, and so are the next ones.
  void read_instead(const SlotRange& rows) HEADRACE_EXCLUDES(mu_);
  // The chunk is decoded or given up: its memory goes back, and it is used again.
  void recycle(const ChunkPointer& chunk) HEADRACE_EXCLUDES(mu_);
  // By the thread that is about to decode.  False: an I/O thread has to read it, and it comes back.
  bool read_late(const ChunkPointer& chunk, std::vector<Buffer>& warm) HEADRACE_EXCLUDES(mu_);

 private:
  struct Job {
    WorkCount::Token token;  // ends last: then the rest is given back
    ChunkPointer read, submit, resolve;
    std::vector<RangePointer> ranges;  // to be read with `submit`
    bool plan = false;
    bool by_runs = false;  // of `resolve`
    explicit operator bool() const { return read || submit || resolve || plan; }
  };
  Job next_job() HEADRACE_REQUIRES(mu_);
  bool may_resolve() const HEADRACE_REQUIRES(mu_);
  bool may_plan() const HEADRACE_REQUIRES(mu_);
  bool may_grant(Chunk& chunk) HEADRACE_REQUIRES(mu_);
  uint64_t count_wanted(Chunk& chunk) HEADRACE_REQUIRES(mu_);
  void grant_first(Job& job) HEADRACE_REQUIRES(mu_);
  void begin_resolve(Job& job) HEADRACE_REQUIRES(mu_);
  void do_job(Job& job) HEADRACE_EXCLUDES(mu_);
  void resolved(const ChunkPointer& chunk) HEADRACE_EXCLUDES(mu_);
  void plan() HEADRACE_EXCLUDES(planning_mu_) HEADRACE_EXCLUDES(mu_);
  Status plan_step() HEADRACE_EXCLUDES(mu_);  // with planning_mu_ held
  size_t slots_per_chunk(const PlannedStep& step) const;
  uint64_t mean_bytes(const Task& task) const;

  const EngineWork& work_;
  Memory& memory_;
  EngineCounters& counters_;
  WorkCount& active_;
  Delivery& delivery_;
  Planner& planner_;
  Reader& reader_;
  Decoding* decoding_ = nullptr;
  const uint64_t resolve_ahead_bytes_;  // of far storage

  Mutex planning_mu_;  // from the feed's step to its place in Delivery; before all other locks
  Mutex mu_;
  CondVar wakes_;
  std::deque<SlotRange> to_resolve_ HEADRACE_GUARDED_BY(mu_);
  std::map<PlanOrder, ChunkPointer> resolved_ HEADRACE_GUARDED_BY(mu_);  // wait for a grant
  uint64_t resolved_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;                 // of their samples
  std::deque<ChunkPointer> to_read_ HEADRACE_GUARDED_BY(mu_);  // tried late in vain, and granted
  ReadWindow window_ HEADRACE_GUARDED_BY(mu_);                 // of resolved_, of far storage
  std::vector<uint64_t> wanted_ HEADRACE_GUARDED_BY(mu_);      // scratch of count_wanted()
  std::vector<ChunkPointer> idle_chunks_ HEADRACE_GUARDED_BY(mu_);
  uint64_t started_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;  // of samples resolved since the start
  int waiting_ HEADRACE_GUARDED_BY(mu_) = 0;             // threads
  bool planning_ HEADRACE_GUARDED_BY(mu_) = false;
  bool ended_ HEADRACE_GUARDED_BY(mu_) = true;  // the feed has no further step
  bool stopping_ HEADRACE_GUARDED_BY(mu_) = true;
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
};

}  // namespace headrace
