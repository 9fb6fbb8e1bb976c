// SPDX-License-Identifier: Apache-2.0
#include "engine/read_ahead.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr double kInterval = 20e6;           // ns over which a rate is measured, at least
constexpr uint64_t kPeriod = 5'000'000'000;  // ns after which an old shortest latency is forgotten
constexpr double kForget = 0.98;             // of the highest rate, each interval
constexpr double kForgetSizes = 0.5;         // of what reads of a size brought, each interval
constexpr int kStarted = 8;                  // intervals after which the start is over
// Beyond what is needed: more at the start, to grow; later less memory does.
constexpr double kFactorAtStart = 2;
constexpr double kFactor = 1.5;

}  // namespace

ReadAhead::ReadAhead(uint64_t least_bytes, uint64_t most_bytes, uint64_t first_bytes)
    : target_(std::clamp(first_bytes, least_bytes, std::max(least_bytes, most_bytes))),
      first_(first_bytes),
      least_(least_bytes),
      most_(std::max(least_bytes, most_bytes)) {}

void ReadAhead::completed(uint64_t bytes, uint64_t sent_ns, uint64_t completed_ns) {
  MutexLock lock(mu_);
  if (interval_begin_ == 0) interval_begin_ = period_begin_ = sent_ns;
  interval_bytes_ += bytes;
  OfSize& size = sizes_[std::min<size_t>(std::bit_width(bytes), kSizes - 1)];
  size.bytes += static_cast<double>(bytes);
  size.shortest_ns = std::min(size.shortest_ns, completed_ns - std::min(sent_ns, completed_ns));
  // At least one round trip: answers come in bursts.
  const double interval = std::max(kInterval, latency());
  if (static_cast<double>(completed_ns - std::min(interval_begin_, completed_ns)) >= interval)
    end_interval(completed_ns);
}

double ReadAhead::latency() const {
  double bytes = 0;
  double sum = 0;
  for (const OfSize& size : sizes_) {
    if (size.bytes < 1) continue;
    bytes += size.bytes;
    sum += size.bytes * static_cast<double>(size.latency_ns());
  }
  return bytes > 0 ? sum / bytes : 0;
}

void ReadAhead::end_interval(uint64_t now_ns) {
  rate_ = std::max(rate_ * kForget, static_cast<double>(interval_bytes_) /
                                        static_cast<double>(now_ns - interval_begin_));
  interval_begin_ = now_ns;
  interval_bytes_ = 0;
  intervals_ = std::min(intervals_ + 1, kStarted);
  choose();
  for (OfSize& size : sizes_) size.bytes *= kForgetSizes;
  if (now_ns < period_begin_ + kPeriod) return;
  period_begin_ = now_ns;
  for (OfSize& size : sizes_) {
    if (size.shortest_ns != ~uint64_t{0}) size.before_ns = size.shortest_ns;
    size.shortest_ns = ~uint64_t{0};
  }
}

void ReadAhead::choose() {
  const bool is_start = intervals_ < kStarted;
  double wanted = (is_start ? kFactorAtStart : kFactor) * rate_ * latency();
  if (is_start) wanted = std::max(wanted, static_cast<double>(first_));
  const double most = static_cast<double>(most_);
  target_.store(std::clamp(static_cast<uint64_t>(std::min(wanted, most)), least_, most_),
                std::memory_order_relaxed);
}

void ReadAhead::set_limits(uint64_t least_bytes, uint64_t most_bytes) {
  MutexLock lock(mu_);
  least_ = least_bytes;
  most_ = std::max(least_bytes, most_bytes);
  choose();
}

}  // namespace headrace
