// SPDX-License-Identifier: Apache-2.0
//
// Spans: what a thread did from when to when.  Off until set_tracing(true); a span then costs two
// looks at the clock and five stores (bench/micro/span_cost), off one load.
//
//   name_this_thread("hr-decode-3");
//   { Span span(Stage::kDecode, batch, bytes);  … }
//   record_span(Stage::kRead, request.sent_ns, request.completed_ns, batch, bytes);
//   for (const SpanRecord& s : collect_spans()) …
//
// Each thread writes into a ring of its own that holds the last kSpansKept spans: no lock, no wait,
// the oldest are overwritten.  The ring of a thread that ended stays until it was collected; of
// such rings the last kRingsKept stay.  A forked child begins with none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/clock.h"

namespace headrace {

enum class Stage : uint8_t {
  kPlan,     // which samples are in the next step
  kResolve,  // which bytes of which files they need
  kRead,     // from handing a request over to its completion
  kOpen,     // decompressing what samples share
  kDecode,   // one sample into its slots
  kPack,     // the columns of a batch
  kStage,    // from packed to delivered: a copy, a device, a process
  kDeliver,  // handing a batch to the consumer
  kConsume,  // the consumer, from one batch to its asking for the next
};
inline constexpr size_t kStages = 9;
std::string_view name_of(Stage stage);

inline constexpr size_t kSpansKept = 16383;  // a thread: 512 KiB, from its first span on
inline constexpr size_t kRingsKept = 64;     // of threads that ended
inline constexpr uint64_t kNoBatch = ~uint64_t{0};

struct SpanRecord {
  std::string thread;      // its name when the spans were collected, or when it ended
  uint64_t thread_id = 0;  // the system's
  Stage stage = Stage::kPlan;
  bool overlaps = false;  // of record_span(): need not nest in the spans of its thread
  uint64_t begin_ns = 0;  // steady_ns()
  uint64_t end_ns = 0;
  uint64_t batch = kNoBatch;
  uint64_t bytes = 0;
};

inline std::atomic<bool>& tracing_flag() {
  static constinit std::atomic<bool> is_on{false};
  return is_on;
}
inline bool is_tracing() {
  return tracing_flag().load(std::memory_order_relaxed);
}
// For the whole process, from any thread.  What was recorded stays until it is collected.
void set_tracing(bool on);

// From begin to end, on one thread.  Spans of a thread nest.  Does nothing where tracing is off
// when it begins.
class Span {
 public:
  explicit Span(Stage stage, uint64_t batch = kNoBatch, uint64_t bytes = 0) {
    if (is_tracing()) begin(stage, batch, bytes);
  }
  ~Span() {
    if (begin_ns_ != 0) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // What is known only at the end.
  void set_batch(uint64_t batch) { batch_ = batch; }
  void set_bytes(uint64_t bytes) { bytes_ = bytes; }

 private:
  void begin(Stage stage, uint64_t batch, uint64_t bytes) {
    begin_ns_ = steady_ns();
    batch_ = batch;
    bytes_ = bytes;
    stage_ = stage;
  }
  void end();

  uint64_t begin_ns_ = 0;  // 0: tracing was off
  uint64_t batch_;
  uint64_t bytes_;
  Stage stage_;
};

// Something that began and ended by itself: a request to a store, a copy to a device.  Recorded
// with the calling thread, where tracing is on.
void record_span(Stage stage, uint64_t begin_ns, uint64_t end_ns, uint64_t batch = kNoBatch,
                 uint64_t bytes = 0);

// Every span that was recorded and not collected before, by its begin.  From any thread, while
// others record: what they overwrite meanwhile counts as lost.
std::vector<SpanRecord> collect_spans();
// How many were overwritten, or given up with the ring of an ended thread, before they were
// collected; since the process began.
uint64_t lost_spans();

// In spans, debuggers and top (which shows the first 15 characters).
void name_this_thread(std::string_view name);

}  // namespace headrace
