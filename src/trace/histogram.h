// SPDX-License-Identifier: Apache-2.0
//
// Histogram: how values (latencies in nanoseconds) are spread.  Buckets are four to a doubling, so
// that a quantile is at most a quarter off, from 0 to 2^64 - 1, in 2 KiB.
//
//   histogram.add(request.completed_ns - request.sent_ns);
//   const HistogramStats stats = histogram.snapshot();
//   stats.quantile(0.99);
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headrace {

inline constexpr size_t kHistogramBuckets = 252;

// The bucket of a value, and the smallest value of a bucket.
size_t histogram_bucket(uint64_t value);
uint64_t histogram_floor(size_t bucket);

// Immutable, hence thread-safe.
struct HistogramStats {
  std::array<uint64_t, kHistogramBuckets> counts{};
  uint64_t count = 0;
  uint64_t sum = 0;
  uint64_t largest = 0;

  double mean() const;
  // The value below which the share q of all values lie, evenly spread within its bucket; never
  // above the largest.  0 where there are no values.
  uint64_t quantile(double q) const;
  // What came after an earlier snapshot of the same histogram.  `largest` stays that of all.
  HistogramStats since(const HistogramStats& earlier) const;
};

// Thread-safe.  Relaxed: a snapshot may straddle an event.
class Histogram {
 public:
  void add(uint64_t value);
  HistogramStats snapshot() const;
  uint64_t quantile(double q) const { return snapshot().quantile(q); }

 private:
  std::array<std::atomic<uint64_t>, kHistogramBuckets> counts_{};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> largest_{0};
};

}  // namespace headrace
