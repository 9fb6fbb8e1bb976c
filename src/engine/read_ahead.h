// SPDX-License-Identifier: Apache-2.0
//
// ReadAhead: how many bytes of one source are worth having under way or waiting to be decoded.
//
//   bytes = 2 x (shortest latency seen lately) x (highest rate seen lately), within [least, most]
//
// A far source begins with what its store says; once some round trips were measured, they count.
// While too few bytes are under way they themselves limit the rate, so the number doubles with
// each round trip until something else is the limit: the decoder, the consumer or the bandwidth.
// The shortest latency, because a long queue lengthens all others.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace headrace {

// Thread-safe.
class ReadAhead {
 public:
  // Begins with `first_bytes`, where that is more than the least.
  ReadAhead(uint64_t least_bytes, uint64_t most_bytes, uint64_t first_bytes = 0);

  // A read of so many bytes took from `sent_ns` to `completed_ns` (steady clock).
  void completed(uint64_t bytes, uint64_t sent_ns, uint64_t completed_ns) HEADRACE_EXCLUDES(mu_);
  uint64_t bytes() const { return target_.load(std::memory_order_relaxed); }
  // Limits may change while running.
  void set_limits(uint64_t least_bytes, uint64_t most_bytes) HEADRACE_EXCLUDES(mu_);

 private:
  void end_interval(uint64_t now_ns) HEADRACE_REQUIRES(mu_);
  void choose() HEADRACE_REQUIRES(mu_);

  std::atomic<uint64_t> target_;
  Mutex mu_;
  uint64_t least_ HEADRACE_GUARDED_BY(mu_), most_ HEADRACE_GUARDED_BY(mu_);
  const uint64_t first_;
  uint64_t interval_begin_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t interval_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
  int intervals_ HEADRACE_GUARDED_BY(mu_) = 0;  // measured so far, up to kSettled
  double rate_ HEADRACE_GUARDED_BY(mu_) = 0;    // bytes a ns, the highest of late, slowly forgotten
  uint64_t epoch_begin_ HEADRACE_GUARDED_BY(mu_) = 0;
  // The shortest of this period and of the one before.
  uint64_t latency_ns_ HEADRACE_GUARDED_BY(mu_) = ~uint64_t{0};
  uint64_t latency_before_ns_ HEADRACE_GUARDED_BY(mu_) = ~uint64_t{0};
};

}  // namespace headrace
