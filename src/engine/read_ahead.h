// SPDX-License-Identifier: Apache-2.0
//
// ReadAhead: how many bytes of one source are worth having under way or waiting to be decoded.
//
//   bytes = factor x rate x latency, within [least, most]
//
// rate: the highest seen lately.  latency: of reads of each size the shortest seen lately, by the
// bytes they brought; the shortest, because a long queue lengthens all others.  A far source begins
// with what its store says.  While too few bytes are under way they themselves limit the rate, so
// the number grows by the factor with each round trip, until something else is the limit: the
// decoder, the consumer or the bandwidth.
#pragma once

#include <array>
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
  static constexpr size_t kSizes = 48;  // by the doubling of the bytes
  // Reads of about one size.
  struct OfSize {
    uint64_t shortest_ns = ~uint64_t{0};  // of this period
    uint64_t before_ns = ~uint64_t{0};    // and of the one before
    double bytes = 0;                     // that they brought, the older the less
    uint64_t latency_ns() const { return shortest_ns < before_ns ? shortest_ns : before_ns; }
  };

  void end_interval(uint64_t now_ns) HEADRACE_REQUIRES(mu_);
  void choose() HEADRACE_REQUIRES(mu_);
  double latency() const HEADRACE_REQUIRES(mu_);

  std::atomic<uint64_t> target_;
  const uint64_t first_;
  Mutex mu_;
  uint64_t least_ HEADRACE_GUARDED_BY(mu_), most_ HEADRACE_GUARDED_BY(mu_);
  uint64_t interval_begin_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t interval_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
  int intervals_ HEADRACE_GUARDED_BY(mu_) = 0;  // measured so far, up to kStarted
  uint64_t period_begin_ HEADRACE_GUARDED_BY(mu_) = 0;
  double rate_ HEADRACE_GUARDED_BY(mu_) = 0;  // bytes a ns
  std::array<OfSize, kSizes> sizes_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
