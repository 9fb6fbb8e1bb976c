// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine, each with one lock and its own queues, and the threads that run them.
//
//   Planner ─► Reading ─► Reader ─► Decoding ─► Delivery ─► consumer
//              (when)     (stores)  (slots)     (order)
//        ▲ substitutes ◄─────────────┘   │
//        └──────── woken when a batch was taken ◄──┘
//
// No part calls another while it holds its own lock, but for Decoding, which asks Delivery whether
// a step may have slots; so locks are never taken in a circle.
#pragma once

#include <sys/types.h>

#include <thread>
#include <vector>

#include "engine/bad_samples.h"
#include "engine/decoding.h"
#include "engine/delivery.h"
#include "engine/memory.h"
#include "engine/planner.h"
#include "engine/reader.h"
#include "engine/reading.h"
#include "engine/work.h"
#include "engine/work_count.h"

namespace headrace {

class Engine::Core {
 public:
  Core(std::vector<SourceWork> sources, std::vector<ColumnWork> columns, EngineOptions options);
  ~Core();

  bool is_forked() const;  // this process is not the one that made the engine
  Status start(std::unique_ptr<Feed> feed);
  void stop();
  Result<Next> next(std::unique_ptr<Batch>& out, int timeout_ms);
  void set_limits(const EngineLimits& limits);
  EngineStats stats() const;
  std::vector<Quarantined> quarantine() const { return bad_.all(); }

 private:
  void start_threads();

<<<<<<< HEAD
  const EngineWork work_;
  const pid_t pid_;  // a forked child has none of the threads
  EngineCounters counters_;
  Memory memory_;
  WorkCount active_;
  Planner planner_;
  BadSampleLog bad_;
  Delivery delivery_;
  Decoding decoding_;
  Reader reader_;
  Reading reading_;
=======
  // Threads.  Each runs until closing_; an exception becomes the feed's error.
  void start_threads() HEADRACE_REQUIRES(mu_);
  void settle_copies();
  void io_thread();
  void compute_thread();

  // What an I/O thread does next (admit.cc): read a chunk that has its grant, ask what an
  // errand needs, or plan the next batch (one thread at a time).
  struct Duty {
    ChunkPtr ask, read;
    bool plan = false;
    explicit operator bool() const { return ask || read || plan; }
  };
  Duty next_duty() HEADRACE_REQUIRES(mu_);
  bool head_is_ready() const HEADRACE_REQUIRES(mu_);
  void wait_for_duty(const Stopwatch& idle) HEADRACE_REQUIRES(mu_);
  bool may_admit() const HEADRACE_REQUIRES(mu_);
  void admit() HEADRACE_EXCLUDES(mu_);
  Status admit_step();
  size_t slots_per_chunk(const FeedStep& step) const;

  // Reading (fetch.cc).
  ChunkPtr begin_chunk(Errand errand) HEADRACE_REQUIRES(mu_);
  void ask(const ChunkPtr& chunk) HEADRACE_EXCLUDES(mu_);
  void ask_index(Chunk& chunk);
  bool may_grant(const Chunk& chunk) HEADRACE_REQUIRES(mu_);
  void submit(const ChunkPtr& chunk);
  void read_ranges(const ChunkPtr& chunk);
  bool may_read_late(const Chunk& chunk);
  void note_whole_file(uint64_t bytes);
  bool read_late(const ChunkPtr& chunk, std::vector<Buffer>& warm) HEADRACE_EXCLUDES(mu_);
  void read_shared_unit(const std::shared_ptr<SharedUnit>& unit);
  void arrived(const ChunkPtr& chunk);
  void drop(const ChunkPtr& chunk) HEADRACE_REQUIRES(mu_);

  // Decoding (decode.cc).
  void decode(const ChunkPtr& chunk, std::vector<Buffer>& warm, SampleContext& context);
  Status decode_slot(Chunk& chunk, size_t i, SampleContext& context, uint64_t& bytes);
  void decode_unit(const std::shared_ptr<SharedUnit>& unit);
  Status replace(const Errand& errand, size_t slot, const Status& why, bool& replaced);
  void slots_done(const std::shared_ptr<Flight>& flight, size_t n);

  void take_memory(uint64_t bytes) HEADRACE_REQUIRES(mu_);
  void work_done() HEADRACE_REQUIRES(mu_);
  Key draws_of(const Task& task) const;
  Status explain(Status status, const Task& task) const;
  void fail_feed(const Status& status) HEADRACE_EXCLUDES(mu_);
  uint64_t head() const HEADRACE_REQUIRES(mu_);

  const std::vector<SourceWork> sources_;
  const std::vector<ColumnWork> columns_;
  EngineOptions options_;  // settled by the constructor
  const pid_t pid_;        // a forked child has none of the threads
  bool wants_key_ = false;
  bool hands_over_ = false;   // some column is a list of values as they are stored
  bool only_copies_ = false;  // all are, or keys and numbers
  bool is_light_ = false;     // no column is more work than reading it
  std::shared_ptr<BufferPool> pool_;
  UnitCache units_;

  StageCounters planned_, read_, decoded_, packed_, delivered_;
  std::atomic<int> read_early_{0};  // so many chunks are not tried late: the last was not there
  std::atomic<uint64_t> whole_file_bytes_{0},
      whole_files_{0};  // what plain files turned out to hold

  mutable Mutex mu_;
  CondVar io_wakes_, compute_wakes_, consumer_wakes_, quiet_;
>>>>>>> decoder
  std::vector<std::thread> threads_;
};

}  // namespace headrace
