// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine, each with one lock and its own queues, and the threads that run them.
//
//   Planner ─► ReadScheduler ─► Reader ─► Decoding ─► Delivery ─► consumer
//              (when)     (stores)  (slots)     (order)
//        ▲ substitutes ◄─────────────┘   │
//        └──────── woken when a batch was taken ◄──┘
//
// No part calls another while it holds its own lock, but for Decoding, which asks Delivery whether
// a step may have slots, and for ReadScheduler's lock of planning, which comes before all others;
// so locks are never taken in a circle.
#pragma once

#include <sys/types.h>

#include <thread>
#include <vector>

#include "engine/bad_samples.h"
#include "engine/decoding.h"
#include "engine/delivery.h"
#include "engine/memory.h"
#include "engine/planner.h"
#include "engine/read_scheduler.h"
#include "engine/reader.h"
#include "engine/work.h"
#include "engine/work_count.h"

namespace headrace {

class Engine::Core {
 public:
  Core(std::vector<SourceWork> sources, std::vector<ColumnWork> columns, EngineOptions options);
  ~Core();

  bool is_forked() const;  // this process is not the one that made the engine
  Status start(std::unique_ptr<Feed> feed);
  Status replan(uint64_t from, const std::function<void(Feed&)>& change);
  void stop();
  Result<Next> next(std::unique_ptr<Batch>& out, int timeout_ms);
  void set_limits(const EngineLimits& limits);
  EngineStats stats() const;
  std::vector<Quarantined> quarantine() const { return bad_.all(); }

 private:
  void start_threads();

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
  ReadScheduler scheduler_;
  uint64_t first_step_ = 0;  // the number of the feed's first step
  std::vector<std::thread> threads_;
};

}  // namespace headrace
