// SPDX-License-Identifier: Apache-2.0
//
// Engine: fills the slots of batches, ahead of the consumer, in plan order.
//
//   Feed ─► steps planned far ahead ─► resolved, merged, read ─► decoded into slots ─► packed,
//           (tasks alone)              (bytes under way and        (from the first      stages,
//                                       held, in plan order)        sample on)          delivered
//
// Two limits: bytes under way and held, for each source from measured latency and rate; and
// batches with slots.  Memory has one budget for both: grants go in plan order, the batch at the
// head is always granted, idle memory and idle shared units are given up first, delivered batches
// leave the budget.  read_scheduler.h says why it never deadlocks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "batch/batch.h"
#include "batch/stage.h"
#include "codec/decoder.h"
#include "engine/absent.h"
#include "engine/feed.h"
#include "engine/read_policy.h"
#include "index/source.h"
#include "trace/counters.h"

namespace headrace {

// What to do with a sample whose data is bad.  Storage errors always raise.
struct BadSamples {
  bool replace = false;
  uint64_t budget = 1000;  // replaced samples in an epoch on this rank; one more raises
};

struct EngineOptions {
  int compute_threads = 1;
  int io_threads = 4;
  // Processes that functions run in, for which compute threads wait; and the processors that they
  // share.  0: none.
  int processes = 0;
  int shared_cpus = 1;
  uint64_t memory_budget_bytes = uint64_t{1} << 30;
  // Of each source, stored bytes under way or not yet decoded: at least this, more where latency
  // and rate are high.
  uint64_t read_ahead_bytes = uint64_t{32} << 20;
  size_t batches_ahead = 3;  // with slots and not yet taken by the consumer, at most
  // Where blocks are read whole, the samples at the start of a feed are read by themselves, until
  // they come to so many bytes: meanwhile the blocks of the later ones come.
  uint64_t ranges_first_bytes = uint64_t{16} << 20;
  uint64_t seed = 0;
  BadSamples bad_samples;
  std::vector<std::shared_ptr<const BatchStage>> stages;  // between packed and delivered, in order
  std::shared_ptr<Arena> column_arena;  // where columns take their memory; null: as all else
};

// Those that may change while the engine runs.
struct EngineLimits {
  uint64_t memory_budget_bytes = uint64_t{1} << 30;
  uint64_t read_ahead_bytes = uint64_t{32} << 20;
  size_t batches_ahead = 3;
};

// One output field.
struct ColumnWork {
  ColumnSpec spec;
  // Set: one u8 a sample that says whether it has what that other column is made of.
  std::optional<size_t> presence_of = {};
  // A list whose values a stage reads from the columns' arena (a device copies them from there);
  // other lists are of the engine's own memory.
  bool is_read_by_stage = false;
};

// In SourceWork::fields, what is no field of the source's schema.
inline constexpr uint32_t kNoField = ~uint32_t{0};   // it has none: `absent` says what to give
inline constexpr uint32_t kKeyField = kNoField - 1;  // the sample's key

// How a source fills the columns: sources may store the same field in different ways.
struct SourceWork {
  std::shared_ptr<const Source> source;
  uint64_t id = 0;               // names its draws
  std::vector<uint32_t> fields;  // of its schema, one per column; or kKeyField, kNoField
  std::vector<std::shared_ptr<const Decoder>> decoders;  // one per column; null: of presence
  ReadPolicy policy = {};
  // One per column, or none at all.  Null: a sample that lacks the field is bad.
  std::vector<std::shared_ptr<const AbsentValue>> absent = {};

  const AbsentValue* absent_of(size_t c) const {
    return absent.empty() ? nullptr : absent[c].get();
  }
};

// A sample that was replaced, and why.
struct Quarantined {
  uint64_t sample = 0;
  uint32_t source = 0;
  uint64_t epoch = 0;
  std::string file;
  int64_t offset = -1;
  std::string key;
  std::string cause;
};

struct EngineStats {
  StageStats plan, resolve, read, decode, pack, deliver;
  uint64_t read_latency_median_ns = 0, read_latency_p99_ns = 0;  // from request to completion
  uint64_t reads_under_way = 0, most_reads_under_way = 0;
  uint64_t read_ahead_bytes = 0;  // what is worth having under way or waiting, of all sources
  uint64_t memory_used = 0, memory_peak = 0, memory_budget = 0;
  uint64_t units_reread = 0;
  uint64_t damaged = 0;  // values that were damaged and taken all the same (strict=False)
};

// next(), stats() and quarantine() may be called from different threads; start(),
// stop() and next() by one consumer at a time.
class Engine {
 public:
  Engine(std::vector<SourceWork> sources, std::vector<ColumnWork> columns, EngineOptions options);
  ~Engine();  // stops and joins every thread
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Begins to deliver a feed; an unfinished one is ended first.  Threads start with the
  // first call.
  Status start(std::unique_ptr<Feed> feed);
  // Ends the feed: nothing of it is delivered any more.  Reads under way are cancelled.
  void stop();
  // The feed changes its mind about what it gives from its step `from` on, counted from 0: steps
  // that were planned and not delivered are dropped from there on, and `change` tells the feed to
  // go on with that step.  Steps before it are kept, however far they are.  Fails when the step
  // was delivered; calls nothing when the feed is over.
  Status replan(uint64_t from, const std::function<void(Feed&)>& change);
  void set_limits(const EngineLimits& limits);

  enum class Next : uint8_t { kBatch, kEnd, kTimeout };
  // The next batch in plan order.  After an error the feed is over.
  Result<Next> next(std::unique_ptr<Batch>& out, int timeout_ms);

  // In a forked child nothing but the destructor may be called: a lock may be held for ever.
  bool is_forked() const;
  EngineStats stats() const;
  std::vector<Quarantined> quarantine() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace headrace
