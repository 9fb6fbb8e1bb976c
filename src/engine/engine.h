// SPDX-License-Identifier: Apache-2.0
//
// Engine: fills the slots of batches, ahead of the consumer, in plan order.
//
//   Feed ─► admit a batch ─► I/O threads: what do its samples need? read it ─► compute threads:
//           (budget, look-ahead)          (grants in plan order)               decode into slots
//                                                                                  │ last slot full
//   consumer ◄── next() ◄── batches in plan order ◄────────────────────────────────┘
//
// A batch is cut into chunks, runs of slots of about 64 KiB of stored bytes (one
// picture, many token rows); a chunk is what queues hold.  Memory has one budget:
// grants go in plan order, the batch at the head is always admitted, idle shared
// units are revoked first, delivered batches leave the budget.  So it never deadlocks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "batch/batch.h"
#include "batch/step.h"
#include "codec/decoder.h"
#include "engine/feed.h"
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
  uint64_t memory_budget_bytes = uint64_t{1} << 30;
  uint64_t read_ahead_bytes = uint64_t{32} << 20;  // stored bytes read and not yet decoded
  size_t batches_ahead = 3;  // admitted and not yet taken by the consumer, at most
  uint64_t seed = 0;
  bool read_runs = false;  // read whole blocks and keep them (remote, spinning storage)
  // What lies in the page cache is read by the thread that decodes it, just before: it is then in
  // the processor's cache, and no other thread is woken.  For near storage.
  bool read_late = false;
  BadSamples bad_samples;
  std::shared_ptr<const BatchStep> batch_step;  // may be missing
};

// One output field.
struct ColumnWork {
  ColumnSpec spec;
  bool is_key = false;  // made from the sample's key, not from a field
};

// How a source fills the columns: sources may store the same field in different ways.
struct SourceWork {
  std::shared_ptr<const Source> source;
  uint64_t id = 0;               // names its draws
  std::vector<uint32_t> fields;  // of its schema, one per column; a key's entry is unused
  std::vector<std::shared_ptr<const Decoder>> decoders;  // one per column
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
  StageStats plan, read, decode, pack, deliver;
  uint64_t memory_used = 0, memory_peak = 0, memory_budget = 0;
  uint64_t batches = 0;
  uint64_t units_reread = 0;
  uint64_t damaged = 0;            // values that were damaged and taken all the same (strict=False)
  std::vector<std::string> notes;  // what a user should know, once each
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
  // Ends the feed: nothing of it is delivered any more.  Waits for reads under way.
  void stop();

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
