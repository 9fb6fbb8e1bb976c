// SPDX-License-Identifier: Apache-2.0
#include "storage/http/pool_limit.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kInterval = 100'000'000;  // ns
constexpr double kWorthIt = 1.05;            // a step that brings less than this is taken back
constexpr int kHoldAfterStep = 50;           // intervals: five seconds
constexpr int kHoldAfterThrottle = 10;

}  // namespace

PoolLimit::PoolLimit(uint32_t most, uint32_t loops)
    : most_(std::max(1u, most)),
      first_(std::clamp(kFirst / std::max(1u, loops), 1u, most_)),
      first_near_(std::clamp(kFirstNear / std::max(1u, loops), 1u, most_)),
      first_far_(std::clamp(kFirstFar / std::max(1u, loops), 1u, most_)),
      little_near_(std::clamp(kLittleNear / std::max(1u, loops), 1u, most_)),
      little_bytes_(kLittle / std::max(1u, loops)),
      limit_(first_),
      little_limit_(most_) {}

void PoolLimit::began(uint64_t ns) {
  if (!has_begun_ && limit_ == first_)
    limit_ = ns >= kFar ? first_far_ : ns < kNear ? first_near_ : first_;
  if (!has_begun_ && ns < kNear) little_limit_ = std::min(little_limit_, little_near_);
  if (!has_begun_) is_near_ = ns < kNear;
  has_begun_ = true;
}

void PoolLimit::tick(uint64_t now_ns) {
  if (interval_begin_ == 0) interval_begin_ = now_ns;
  if (now_ns < interval_begin_ + kInterval) return;
  const double seconds = static_cast<double>(now_ns - interval_begin_) / 1e9;
  const uint64_t answers = answers_ + throttles_;
  const bool is_throttled =
      throttles_ > 1 && static_cast<double>(throttles_) > kBearable * static_cast<double>(answers);
  if (is_throttled) {
    limit_ = std::max(1u, limit_ / 2);
    little_limit_ = std::max(limit_, little_limit_ / 2);
    best_rate_ = 0;
    grew_ = false;
    hold_ = kHoldAfterThrottle;
  } else if (hold_ > 0) {
    if (--hold_ == 0) best_rate_ = 0;  // the server may give another rate by now
  } else if (was_full_) {
    little_limit_ = std::min(most_, little_limit_ + std::max(1u, little_limit_ / 2));
    grow_or_hold(static_cast<double>(bytes_) / seconds);
  }
  interval_begin_ = now_ns;
  bytes_ = answers_ = throttles_ = 0;
  was_full_ = false;
}

void PoolLimit::grow_or_hold(double rate) {
  if (rate > best_rate_ * kWorthIt) {
    best_rate_ = rate;
    grew_ = limit_ < most_;
    limit_ = std::min(most_, limit_ + std::max(1u, limit_ / 2));
    return;
  }
  if (grew_) limit_ = std::max(1u, limit_ - limit_ / 3);
  grew_ = false;
  hold_ = kHoldAfterStep;
}

}  // namespace headrace
