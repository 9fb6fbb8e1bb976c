// SPDX-License-Identifier: Apache-2.0
//
// KeySplit: which part of a split a sample belongs to, by its key alone.  So a sample stays
// in its part when others are added, and data sets that share keys are split alike.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/status.h"

namespace headrace {

// Shares are above 0 and sum to at most 1 (a rounding error above is forgiven).
Status check_shares(std::span<const double> shares);

// Samples [border[i], border[i + 1]) are part i of a split by order; borders are rounded down.
std::vector<uint64_t> split_by_order(uint64_t samples, std::span<const double> shares);

// Immutable, hence thread-safe.  Frozen: the same key, seed and shares give the same part for ever.
class KeySplit {
 public:
  KeySplit(std::span<const double> shares, uint64_t seed);

  // The number of the share, or of shares when the sample belongs to none.
  size_t part_of(std::string_view key) const;

 private:
  Key key_;
  std::vector<uint64_t>
      below_;              // part i: the hash is below below_[i], and not below the one before
  bool is_whole_ = false;  // the shares leave nothing out
};

}  // namespace headrace
