// SPDX-License-Identifier: Apache-2.0
//
// EpochGroups: the groups of samples of each epoch, made anew, so that other samples share a row.
//
//   the epoch's order    global   a permutation of all samples
//                        pool     the source's blocks in the epoch's order, their samples permuted
//                                 within pools of two windows: what is read together stays
//                                 near, beside other blocks each time
//                        none     as they lie
//   windows of it        the first one shorter, by a draw of the epoch, so that borders move too
//   groups               of each window by itself (sample_groups.h)
//
// So the number of groups is an epoch's own; it takes going through all lengths once, some
// 0.2 µs a sample (docs/adr/0019).
#pragma once

#include <memory>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "plan/block_tree.h"
#include "plan/order.h"
#include "plan/sample_groups.h"

namespace headrace {

// Thread-safe.  Keeps what it made for the last epochs.
class EpochGroups {
 public:
  // `samples`: the blocks of the source, in samples.
  static Result<std::shared_ptr<EpochGroups>> make(std::shared_ptr<const Grouping> grouping,
                                                   BlockTree samples);

  struct Made {
    std::shared_ptr<const SampleGroups> groups;
    std::shared_ptr<const BlockTree> tree;  // of them, by windows
  };
  // Alike in all epochs.
  const Made& as_they_lie() const { return as_they_lie_; }
  Made of(const OrderName& name, OrderMode mode) HEADRACE_EXCLUDES(mu_);

  const Grouping& grouping() const { return *grouping_; }

 private:
  struct Kept {
    Hash128 name;
    Made made;
  };
  EpochGroups(std::shared_ptr<const Grouping> grouping, BlockTree samples)
      : grouping_(std::move(grouping)), samples_(std::move(samples)) {}
  Made make_epoch(const OrderName& name, OrderMode mode) const;

  const std::shared_ptr<const Grouping> grouping_;
  const BlockTree samples_;
  Made as_they_lie_;
  Mutex mu_;  // held while an epoch is made: whoever asks needs it
  std::vector<Kept> kept_ HEADRACE_GUARDED_BY(mu_);  // latest used first
};

}  // namespace headrace
