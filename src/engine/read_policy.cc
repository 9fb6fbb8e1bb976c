// SPDX-License-Identifier: Apache-2.0
#include "engine/read_policy.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kUnknownRate = uint64_t{100} << 20;  // of one request, where the store says none
// So many reads at a time hide any latency: then samples are read by themselves.
constexpr uint64_t kManyReads = 1024;

uint64_t rate_of(const StoreCost& cost) {
  return cost.bytes_per_second == 0 ? kUnknownRate : cost.bytes_per_second;
}

// What one request could have transferred while it waited for its first byte.
uint64_t bytes_of_latency(const StoreCost& cost) {
  return static_cast<uint64_t>(static_cast<double>(rate_of(cost)) *
                               static_cast<double>(cost.latency_ns) / static_cast<double>(kSecond));
}

}  // namespace

ReadPolicy policy_of(const StoreCost& cost) {
  ReadPolicy policy;
  policy.is_far = !cost.is_near();
  policy.in_caller = cost.in_caller;
  if (!policy.is_far) return policy;
  // A read twice as long as its latency is worth wastes a third of its time at most.
  policy.most_bytes =
      std::clamp<uint64_t>(2 * bytes_of_latency(cost), uint64_t{1} << 20, uint64_t{16} << 20);
  policy.gap_bytes = 64 << 10;
  return policy;
}

bool prefers_runs(const StoreCost& cost, uint64_t mean_bytes) {
  return !cost.is_near() && cost.parallel_reads < kManyReads &&
         bytes_of_latency(cost) > 4 * mean_bytes;
}

}  // namespace headrace
