// SPDX-License-Identifier: Apache-2.0
//
// What an engine works on, fixed when it is made, and the counters of its stages.
#pragma once

#include <atomic>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/rows.h"
#include "index/row_maker.h"
#include "trace/counters.h"
#include "trace/histogram.h"

namespace headrace {

// Immutable, hence thread-safe.
struct EngineWork {
  EngineWork(std::vector<SourceWork> sources, std::vector<ColumnWork> columns,
             EngineOptions options);

  const std::vector<SourceWork> sources;
  const std::vector<ColumnWork> columns;
  const EngineOptions options;
  // What is asked of each source, and where the field of each column stands among it.
  struct Ask {
    std::vector<uint32_t> fields;  // of its schema
    std::vector<size_t> place;     // one per column; kNowhere: not a field of the source
  };
  static constexpr size_t kNowhere = ~size_t{0};
  std::vector<Ask> asks;
  // Of each source, the columns that it assembles right into their slots, where these are several.
  std::vector<std::vector<size_t>> assembled;
  // Of each source, where all of them have nothing but rows; else empty.
  std::vector<RowColumns> rows;
  bool by_rows() const { return !rows.empty(); }
  std::vector<const RowMaker*>
      makers;  // of each source, where all rows are made by them; else empty
  bool makes_rows() const { return !makers.empty(); }
  bool wants_key = false;
  bool hands_over = false;   // some column is a list of values as they are stored
  bool only_copies = false;  // all are, or keys and numbers
  bool is_light = false;     // no column is more work than reading it
  bool is_far = false;       // some source is: steps are planned and resolved far ahead
  bool keeps_runs = true;    // all that is read as runs fits: the next epoch finds it
  bool reads_late = false;   // of all sources, what lies in the page cache is read just before
  bool in_caller = false;    // reads of some source keep the thread that asks

  bool is_small(size_t column) const;

  Key draws_of(const Task& task) const {
    const Key key =
        Key(options.seed).with(sources[task.source].id).with(task.epoch).with(task.sample);
    return task.repeat == 0 ? key : key.with("repeat").with(task.repeat);
  }
  Key epoch_draws_of(const Task& task) const {
    return Key(options.seed).with(sources[task.source].id).with("epoch").with(task.epoch);
  }
  // Adds which sample it was.
  Status explain(Status status, const Task& task) const {
    return status.of_sample(task.sample, sources[task.source].source->key(task.sample));
  }
};

// Thread-safe.
struct EngineCounters {
  StageCounters plan, resolve, read, decode, pack, deliver;
  Histogram read_latency;
  std::atomic<int64_t> reads_under_way{0}, most_reads_under_way{0};

  void under_way(int64_t more) {
    const int64_t now = reads_under_way.fetch_add(more, std::memory_order_relaxed) + more;
    int64_t most = most_reads_under_way.load(std::memory_order_relaxed);
    while (now > most && !most_reads_under_way.compare_exchange_weak(most, now)) {
    }
  }
};

}  // namespace headrace
