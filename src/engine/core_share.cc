// SPDX-License-Identifier: Apache-2.0
#include "engine/core_share.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

// Long enough for some calls of functions of some milliseconds, short enough to follow a change.
constexpr uint64_t kIntervalNs = 50'000'000;
constexpr double kNew = 0.3;  // weight of the last interval

}  // namespace

int threads_beside(int cpus, double busy_processes, int threads) {
  const double left = std::max(0.0, static_cast<double>(cpus) - busy_processes);
  return std::clamp(static_cast<int>(std::lround(left)), 1, std::max(1, threads));
}

bool CoreShare::come_back(uint64_t busy_ns, uint64_t now_ns) {
  --away_;
  busy_ns_ += busy_ns;
  if (begin_ns_ == 0) begin_ns_ = now_ns;
  const uint64_t passed = now_ns - begin_ns_;
  if (passed < kIntervalNs) return false;
  // What a call took that began before the interval counts to it, too: at most all were busy.
  const double busy = std::min(static_cast<double>(busy_ns_) / static_cast<double>(passed),
                               static_cast<double>(processes_));
  busy_ = busy_ < 0 ? busy : (1 - kNew) * busy_ + kNew * busy;
  begin_ns_ = now_ns;
  busy_ns_ = 0;
  const int was = may_run_;
  may_run_ = threads_beside(cpus_, busy_, threads_);
  return may_run_ != was;
}

}  // namespace headrace
