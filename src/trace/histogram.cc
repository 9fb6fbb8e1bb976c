// SPDX-License-Identifier: Apache-2.0
#include "trace/histogram.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr unsigned kStepBits = 2;  // four steps a doubling
constexpr size_t kSteps = size_t{1} << kStepBits;

}  // namespace

// 0, 1, 2, 3, then 4 5 6 7, 8 10 12 14, 16 20 24 28 …
size_t histogram_bucket(uint64_t value) {
  if (value < kSteps) return static_cast<size_t>(value);
  const auto doubling = static_cast<unsigned>(std::bit_width(value)) - 1;
  const uint64_t step = (value >> (doubling - kStepBits)) & (kSteps - 1);
  return (doubling - kStepBits + 1) * kSteps + static_cast<size_t>(step);
}

uint64_t histogram_floor(size_t bucket) {
  if (bucket < kSteps) return bucket;
  const size_t shift = bucket / kSteps - 1;
  return (uint64_t{kSteps} + bucket % kSteps) << shift;
}

double HistogramStats::mean() const {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

uint64_t HistogramStats::quantile(double q) const {
  if (count == 0) return 0;
  const double wanted = std::clamp(q, 0.0, 1.0) * static_cast<double>(count);
  double before = 0;
  for (size_t b = 0; b < kHistogramBuckets; ++b) {
    const auto here = static_cast<double>(counts[b]);
    if (here == 0 || before + here < wanted) {
      before += here;
      continue;
    }
    const uint64_t low = histogram_floor(b);
    const uint64_t high = b + 1 < kHistogramBuckets ? histogram_floor(b + 1) - 1 : UINT64_MAX;
    const double share = (wanted - before) / here;
    const auto value = low + static_cast<uint64_t>(share * static_cast<double>(high - low));
    return std::min(value, largest);
  }
  return largest;
}

HistogramStats HistogramStats::since(const HistogramStats& earlier) const {
  HistogramStats out = *this;
  for (size_t b = 0; b < kHistogramBuckets; ++b) out.counts[b] -= earlier.counts[b];
  out.count -= earlier.count;
  out.sum -= earlier.sum;
  return out;
}

void Histogram::add(uint64_t value) {
  counts_[histogram_bucket(value)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  uint64_t largest = largest_.load(std::memory_order_relaxed);
  while (value > largest &&
         !largest_.compare_exchange_weak(largest, value, std::memory_order_relaxed)) {
  }
}

HistogramStats Histogram::snapshot() const {
  HistogramStats out;
  for (size_t b = 0; b < kHistogramBuckets; ++b) {
    out.counts[b] = counts_[b].load(std::memory_order_relaxed);
    out.count += out.counts[b];
  }
  out.sum = sum_.load(std::memory_order_relaxed);
  out.largest = largest_.load(std::memory_order_relaxed);
  return out;
}

}  // namespace headrace
