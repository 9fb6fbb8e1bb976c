// SPDX-License-Identifier: Apache-2.0
//
// The engine's threads and queues.  One mutex guards the queues and the accounts; work
// (planning, reading, decoding) happens outside it.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <set>
#include <thread>

#include "engine/flight.h"

namespace headrace {

class Engine::Core {
 public:
  Core(std::vector<SourceWork> sources, std::vector<ColumnWork> columns, EngineOptions options);
  ~Core();

  bool is_forked() const;  // this process is not the one that made the engine
  Status start(std::unique_ptr<Feed> feed);
  void stop() HEADRACE_EXCLUDES(mu_);
  Result<Next> next(std::unique_ptr<Batch>& out, int timeout_ms) HEADRACE_EXCLUDES(mu_);
  EngineStats stats() const HEADRACE_EXCLUDES(mu_);
  std::vector<Quarantined> quarantine() const HEADRACE_EXCLUDES(mu_);

 private:
  // What a compute thread does next: decode a chunk, or open a unit that many share.
  struct Job {
    ChunkPtr chunk;
    std::shared_ptr<SharedUnit> unit;
  };

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
  std::vector<std::thread> threads_;
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  bool stopping_ HEADRACE_GUARDED_BY(mu_) = false;  // the feed is being ended
  bool ended_ HEADRACE_GUARDED_BY(mu_) = true;      // the feed has no further step
  bool planning_ HEADRACE_GUARDED_BY(mu_) = false;
  bool consumer_waits_ HEADRACE_GUARDED_BY(mu_) = false;
  bool watched_ HEADRACE_GUARDED_BY(mu_) = false;  // an idle I/O thread looks by itself
  size_t active_ HEADRACE_GUARDED_BY(mu_) =
      0;                        // chunks, units and plans someone works on or waits for
  std::unique_ptr<Feed> feed_;  // used by the planning thread, or under feed_mu_
  Mutex feed_mu_;
  uint64_t sequence_ HEADRACE_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::shared_ptr<Flight>> flights_
      HEADRACE_GUARDED_BY(mu_);  // admitted, not taken
  std::set<uint64_t> ready_ HEADRACE_GUARDED_BY(mu_);
  std::deque<Errand> to_fetch_ HEADRACE_GUARDED_BY(mu_);
  std::vector<ChunkPtr> idle_chunks_ HEADRACE_GUARDED_BY(mu_);
  std::deque<ChunkPtr> to_read_ HEADRACE_GUARDED_BY(mu_);  // tried late in vain, and granted
  std::multimap<std::pair<uint64_t, size_t>, Job> to_decode_ HEADRACE_GUARDED_BY(mu_);
  std::map<std::pair<uint64_t, size_t>, ChunkPtr> parked_
      HEADRACE_GUARDED_BY(mu_);                 // wait for a grant
  uint64_t used_ HEADRACE_GUARDED_BY(mu_) = 0;  // of the budget: slots, stored bytes, shared units
  uint64_t stored_ HEADRACE_GUARDED_BY(mu_) = 0;  // stored bytes alone
  uint64_t flight_bytes_ HEADRACE_GUARDED_BY(mu_) =
      0;  // what the last batch took: a guess at the next
  uint64_t peak_ HEADRACE_GUARDED_BY(mu_) = 0;
  Status feed_status_ HEADRACE_GUARDED_BY(mu_);
  // Of each epoch under way, the samples found bad: (source, sample).
  std::map<uint64_t, std::set<std::pair<uint32_t, uint64_t>>> replaced_ HEADRACE_GUARDED_BY(mu_);
  std::vector<Quarantined> quarantine_ HEADRACE_GUARDED_BY(mu_);
  std::vector<std::string> notes_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
