// SPDX-License-Identifier: Apache-2.0
//
// SampleGroups: samples of different lengths that are delivered together.  The plan then runs over
// groups as over samples: order, ranks, tails and states are theirs.
//
//   packed     a group is what fits into a row of `capacity` tokens, by best fit, longest first
//   cut        a group is a batch whose cost stays within a budget of tokens
//
//   samples   0 … W-1 | W … 2W-1 | …        windows of a fixed number of samples, in some order
//   groups    0 … a-1 | a … b-1  | …        each window is grouped by itself, alike on every rank
//
// So the number of groups follows from lengths and order alone, and every sample that has a token
// is in exactly one group.  The order is that of the data, or one of each epoch (epoch_groups.h).
#pragma once

#include <cstdint>
#include <functional>
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

struct GroupRule {
  uint64_t capacity = 0;  // tokens of a row that samples are packed into; 0: cut by the budget
  BatchBudget budget = {};
  uint64_t window = 4096;  // samples that are grouped together
  bool anew = true;        // each epoch, where it is shuffled; else the same groups in all of them
};

// The samples at the positions [begin, begin + count) of an order, appended to `out`.
using SampleRun = std::function<void(uint64_t begin, uint64_t count, std::vector<uint32_t>& out)>;

// Immutable, hence thread-safe.  4 bytes a sample, 8 a group.
class SampleGroups {
 public:
  uint64_t size() const { return first_.size() - 1; }
  // Ascending where packed; as they were put together where cut.
  std::span<const uint32_t> members(uint64_t group) const {
    return std::span(members_).subspan(first_[group], first_[group + 1] - first_[group]);
  }
  // Groups of each window: what the plan orders by.
  const std::vector<uint32_t>& blocks() const { return blocks_; }

 private:
  friend class Grouping;
  void add(std::span<const uint32_t> members);

  std::vector<uint32_t> members_;
  std::vector<uint64_t> first_{0};
  std::vector<uint32_t> blocks_;
};

// The lengths and the rule, from which groups are made.  Immutable, hence thread-safe.
class Grouping {
 public:
  // Samples of 0 tokens are left out.  kInvalidArgument names the first sample that is too long.
  static Result<std::shared_ptr<const Grouping>> make(std::vector<uint32_t> lengths,
                                                      const GroupRule& rule);

  uint64_t samples() const { return lengths_.size(); }  // of the source
  uint64_t tokens() const { return tokens_; }
  const GroupRule& rule() const { return rule_; }
  // In windows of the samples as they lie.
  const std::shared_ptr<const SampleGroups>& as_they_lie() const { return as_they_lie_; }
  // In windows of another order, the first one of `first` samples, 1 to the window's.
  std::shared_ptr<const SampleGroups> in_order(const SampleRun& order, uint64_t first) const;
  // Of lengths and rule, whether or not groups are made anew.
  Hash128 fingerprint() const { return fingerprint_; }

 private:
  Grouping() = default;

  std::vector<uint32_t> lengths_;
  GroupRule rule_;
  uint64_t tokens_ = 0;
  std::shared_ptr<const SampleGroups> as_they_lie_;
  Hash128 fingerprint_;
};

}  // namespace headrace
