// SPDX-License-Identifier: Apache-2.0
#include "storage/http/late_answer.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSmallBody = 100 * kMillisecond;  // of a small one, where no rate is known
constexpr uint64_t kLeastRate = 10'000;              // bytes a second

// 0: not known.
uint64_t rate_of(const UsualAnswer& usual) {
  if (usual.others.empty()) return usual.bytes_a_second;
  std::vector<uint64_t> others = usual.others;
  const auto middle = others.begin() + static_cast<ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return usual.bytes_a_second == 0 ? *middle : std::min(usual.bytes_a_second, *middle);
}

uint64_t transfer_ns(uint64_t bytes, uint64_t rate) {
  return static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 /
                               static_cast<double>(std::max(kLeastRate, rate)));
}

}  // namespace

std::optional<uint64_t> late_after_ns(const UsualAnswer& usual, bool has_begun, uint64_t bytes) {
  const uint64_t first = usual.first_byte_ns + 10 * kMillisecond;
  if (!has_begun) return first + first / 2;
  const uint64_t rate = rate_of(usual);
  if (rate > 0) return 3 * (first + transfer_ns(bytes, rate));
  if (bytes < kRateBytes) return 3 * (first + kSmallBody);
  return std::nullopt;
}

}  // namespace headrace
