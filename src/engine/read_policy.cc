// SPDX-License-Identifier: Apache-2.0
#include "engine/read_policy.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kUnknownRate = uint64_t{100} << 20;  // of one request, where the store says none
// So many reads at a time hide any latency: then samples are read by themselves.
constexpr uint64_t kManyReads = 1024;
constexpr uint64_t kLargeRead = uint64_t{1} << 20;
constexpr uint64_t kFewReads = 20;
constexpr uint64_t kFar = 20'000'000;                  // ns
constexpr uint64_t kSoon = 5'000'000;                  // ns
constexpr uint64_t kRequestBytes = uint64_t{2} << 20;  // what a server could send meanwhile

uint64_t rate_of(const StoreCost& cost) {
  return cost.bytes_per_second == 0 ? kUnknownRate : cost.bytes_per_second;
}

// What one request could have transferred while it waited for its first byte.
uint64_t bytes_of_latency(const StoreCost& cost) {
  return static_cast<uint64_t>(static_cast<double>(rate_of(cost)) *
                               static_cast<double>(cost.latency_ns) / static_cast<double>(kSecond));
}

// A read that takes a millisecond and more, and nobody's thread: many must be under way.
bool is_slow(const StoreCost& cost, uint64_t bytes) {
  if (cost.in_caller || cost.bytes_per_second == 0) return false;
  const double ns = static_cast<double>(bytes) / static_cast<double>(cost.bytes_per_second) *
                    static_cast<double>(kSecond);
  return static_cast<double>(cost.latency_ns) + ns >= 1e6;
}

}  // namespace

ReadPolicy policy_of(const StoreCost& cost, uint64_t read_bytes, uint64_t most_ahead_bytes) {
  ReadPolicy policy;
  policy.is_far = !cost.is_near() || is_slow(cost, read_bytes);
  policy.answers_soon = !cost.in_caller && cost.latency_ns < kSoon;
  policy.in_caller = cost.in_caller;
  if (!policy.is_far) return policy;
  // Long enough that the useful number of reads fills what may be under way; not so long that the
  // transfer takes much more than the latency.
  const uint64_t latency = bytes_of_latency(cost);
  const uint64_t parallel = std::max<uint32_t>(1, cost.parallel_reads);
  const uint64_t least = std::max(latency / 4, uint64_t{256} << 10);
  policy.most_bytes =
      std::clamp(most_ahead_bytes / parallel, least, std::max(least, uint64_t{16} << 20));
  policy.gap_bytes = std::min(policy.most_bytes / 4, uint64_t{64} << 10);
  const uint64_t each = latency + std::max(read_bytes, uint64_t{64} << 10);
  // Few large reads fill a wire; memory for more of them would only be cleared in vain.
  const uint64_t at_first = read_bytes < kLargeRead || parallel >= kManyReads ? parallel
                            : cost.latency_ns < kFar ? std::min(parallel, kFewReads)
                                                     : std::min(parallel, 2 * kFewReads);
  policy.first_bytes = std::min(at_first * each, most_ahead_bytes / 4 * 3);
  return policy;
}

uint64_t most_ahead_bytes(uint64_t budget_bytes, bool is_far, bool runs) {
  return is_far && !runs ? budget_bytes / 4 * 3 : budget_bytes / 2;
}

uint64_t most_free_ahead_bytes(uint64_t budget_bytes, bool is_far) {
  return is_far ? budget_bytes / 4 * 3 : budget_bytes / 2;
}

bool prefers_runs(const StoreCost& cost, uint64_t mean_bytes) {
  if (cost.is_near() || cost.parallel_reads >= kManyReads) return false;
  // A server has work with every request, however soon it answers.
  const uint64_t request = cost.is_remote() ? kRequestBytes : 0;
  return std::max(bytes_of_latency(cost), request) > 4 * mean_bytes;
}

}  // namespace headrace
