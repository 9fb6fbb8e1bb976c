// SPDX-License-Identifier: Apache-2.0
//
// SampleGroups: samples of different lengths that are delivered together.  The plan then runs over
// groups as over samples: order, ranks, tails and states are theirs.
//
//   packed     a group is what fits into a row of `capacity` tokens, by best fit, longest first
//   cut        a group is a batch whose cost stays within a budget of tokens
//
//   samples   0 … W-1 | W … 2W-1 | …        windows of a fixed number of samples, in their order
//   groups    0 … a-1 | a … b-1  | …        each window is grouped by itself, alike on every rank
//
// So the number of groups follows from the lengths alone, and every sample that has a token is in
// exactly one group.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/status.h"

namespace headrace {

// What a batch of samples costs.
enum class BatchCost : uint8_t {
  kSum,     // its tokens
  kPadded,  // its samples times the longest of them
};

struct BatchBudget {
  uint64_t most = 0;  // tokens
  BatchCost cost = BatchCost::kPadded;
  bool by_length = true;      // samples of about one length together; else as they come
  uint64_t most_samples = 0;  // in a batch; 0: any number
};

// Immutable, hence thread-safe.  4 bytes a sample, 8 a group.
class SampleGroups {
 public:
  // Samples of 0 tokens are left out.  kInvalidArgument names the first sample that is too long.
  static Result<std::shared_ptr<const SampleGroups>> pack(std::span<const uint32_t> lengths,
                                                          uint64_t capacity, uint64_t window);
  static Result<std::shared_ptr<const SampleGroups>> cut(std::span<const uint32_t> lengths,
                                                         const BatchBudget& budget,
                                                         uint64_t window);

  uint64_t samples() const { return samples_; }  // of the source
  uint64_t size() const { return first_.size() - 1; }
  // Ascending where packed; as they were put together where cut.
  std::span<const uint32_t> members(uint64_t group) const {
    return std::span(members_).subspan(first_[group], first_[group + 1] - first_[group]);
  }
  // Groups of each window: what the plan orders by.
  const std::vector<uint32_t>& blocks() const { return blocks_; }
  uint64_t tokens() const { return tokens_; }
  Hash128 fingerprint() const { return fingerprint_; }

 private:
  SampleGroups() = default;
  void add(std::span<const uint32_t> members);

  uint64_t samples_ = 0;
  uint64_t tokens_ = 0;
  std::vector<uint32_t> members_;
  std::vector<uint64_t> first_{0};
  std::vector<uint32_t> blocks_;
  Hash128 fingerprint_;
};

}  // namespace headrace
