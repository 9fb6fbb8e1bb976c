// SPDX-License-Identifier: Apache-2.0
#include "index/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace {
namespace {

constexpr double kForgiven = 1e-9;  // of a sum like 0.7 + 0.2 + 0.1

// Sums of the first 1, 2, … shares, the last exactly 1 where it is meant to be.
std::vector<double> running_sums(std::span<const double> shares) {
  std::vector<double> sums;
  double sum = 0;
  for (const double share : shares) sums.push_back(sum += share);
  if (!sums.empty() && std::abs(sums.back() - 1) < kForgiven) sums.back() = 1;
  return sums;
}

}  // namespace

Status check_shares(std::span<const double> shares) {
  double sum = 0;
  for (const double share : shares) {
    if (!(share > 0 && share <= 1))
      return invalid(fmt::format("a share of a split is above 0 and at most 1, not {}", share));
    sum += share;
  }
  if (shares.empty()) return invalid("a split needs shares: train=0.9, val=0.1");
  if (sum > 1 + kForgiven)
    return invalid(fmt::format("the shares of a split sum to {:g}, which is more than 1", sum));
  return {};
}

std::vector<uint64_t> split_by_order(uint64_t samples, std::span<const double> shares) {
  std::vector<uint64_t> borders{0};
  for (const double sum : running_sums(shares))
    // A border that is meant to be whole is not lost to a last bit: 0.29 of 100 is 29.
    borders.push_back(std::min(samples, static_cast<uint64_t>(std::floor(
                                            sum * static_cast<double>(samples) + kForgiven))));
  return borders;
}

KeySplit::KeySplit(std::span<const double> shares, uint64_t seed) : key_(Key(seed).with("split")) {
  for (const double sum : running_sums(shares)) {
    is_whole_ = sum >= 1;
    below_.push_back(is_whole_ ? std::numeric_limits<uint64_t>::max()
                               : static_cast<uint64_t>(sum * 0x1.0p64));
  }
}

size_t KeySplit::part_of(std::string_view key) const {
  const uint64_t hash = key_.with(key).value();
  const auto it = std::upper_bound(below_.begin(), below_.end(), hash);
  const auto part = static_cast<size_t>(it - below_.begin());
  return part == below_.size() && is_whole_ ? part - 1 : part;
}

}  // namespace headrace
