// SPDX-License-Identifier: Apache-2.0
#include "engine/read_ahead.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kInterval = 20'000'000;   // ns over which a rate is measured, at least
constexpr uint64_t kPeriod = 5'000'000'000;  // ns after which an old shortest latency is forgotten
constexpr int kSettled = 8;                  // intervals after which what was measured counts alone
constexpr double kForget = 0.98;             // of the highest rate, each interval

}  // namespace

ReadAhead::ReadAhead(uint64_t least_bytes, uint64_t most_bytes, uint64_t first_bytes)
    : target_(std::clamp(first_bytes, least_bytes, std::max(least_bytes, most_bytes))),
      least_(least_bytes),
      most_(std::max(least_bytes, most_bytes)),
      first_(first_bytes) {}

void ReadAhead::completed(uint64_t bytes, uint64_t sent_ns, uint64_t completed_ns) {
  MutexLock lock(mu_);
  if (interval_begin_ == 0) interval_begin_ = epoch_begin_ = sent_ns;
  interval_bytes_ += bytes;
  latency_ns_ = std::min(latency_ns_, completed_ns - std::min(sent_ns, completed_ns));
  // At least one round trip: answers come in bursts.
  const uint64_t interval = std::max(kInterval, std::min(latency_ns_, latency_before_ns_));
  if (completed_ns >= interval_begin_ + interval) end_interval(completed_ns);
}

void ReadAhead::end_interval(uint64_t now_ns) {
  const double rate =
      static_cast<double>(interval_bytes_) / static_cast<double>(now_ns - interval_begin_);
  rate_ = std::max(rate_ * kForget, rate);
  interval_begin_ = now_ns;
  interval_bytes_ = 0;
  intervals_ = std::min(intervals_ + 1, kSettled);
  choose();
  if (now_ns < epoch_begin_ + kPeriod) return;
  epoch_begin_ = now_ns;
  latency_before_ns_ = latency_ns_;
  latency_ns_ = ~uint64_t{0};
}

void ReadAhead::choose() {
  const uint64_t latency = std::min(latency_ns_, latency_before_ns_);
  double wanted = latency == ~uint64_t{0} ? 0 : 2 * rate_ * static_cast<double>(latency);
  if (intervals_ < kSettled) wanted = std::max(wanted, static_cast<double>(first_));
  target_.store(std::clamp(static_cast<uint64_t>(wanted), least_, most_),
                std::memory_order_relaxed);
}

void ReadAhead::set_limits(uint64_t least_bytes, uint64_t most_bytes) {
  MutexLock lock(mu_);
  least_ = least_bytes;
  most_ = std::max(least_bytes, most_bytes);
  choose();
}

}  // namespace headrace
