// SPDX-License-Identifier: Apache-2.0
//
// Order: position g of an epoch ↦ sample, a bijection of [0, N) that nobody
// stores.  In mode kPool it is composed of three:
//
//   g            ─►  (lane, t)    lane = bit-reversed g mod L, t = g div L
//   (lane, t)    ─►  q            a lane is a consecutive run of the block order; it is cut into
//                                 pools of P samples, permuted inside.  Lane of residue j starts
//                                 P·j/L samples into its first pool, so that lanes turn to their
//                                 next pool at different steps
//   q            ─►  sample       the block order (block_order.h)
//
//   lane 0   ├──────P──────┼──────P──────┼──────P──────┤        the window at a time is one
//   lane 1   ├─────┼──────P──────┼──────P──────┼───────┤        pool of each lane: L·P samples
//   lane 2   ├─────────┼──────P──────┼──────P──────┼───┤
//
// Keys: the block order's is named by epoch div reassign_every, all else by epoch.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/block_order.h"
#include "plan/block_tree.h"
#include "plan/permutation.h"
#include "plan/shape.h"

namespace headrace {

struct OrderName {
  uint64_t seed = 0;
  std::string_view source = {};  // empty when there is only one: renaming it changes nothing
  uint64_t epoch = 0;
  uint64_t reassign_every = 1;
};

// One thread at a time: look-ups fill caches, one pool for each lane they meet.
// Borrows the tree.
class Order {
 public:
  // shape.lanes a power of two up to kMaxLanes; shape.pool in [1, 2^63].
  Order(const BlockTree& tree, const OrderName& name, const OrderShape& shape);

  uint64_t samples() const { return tree_.samples(); }
  uint32_t lanes() const { return shape_.lanes; }
  uint32_t lane_of(uint64_t g) const;
  uint64_t t_of(uint64_t g) const { return g >> lane_bits_; }

  // The sample at position g, as numbered in natural order.  g < samples().
  uint64_t at(uint64_t g);
  // The sample that stands in for a bad one at g: that of the attempt-th next
  // position of the same pool (else: of the epoch), wrapping; nothing once all
  // were tried.  attempt counts from 1.
  std::optional<uint64_t> substitute(uint64_t g, uint64_t attempt);

  // The index tables contradict themselves; samples given since are wrong.
  bool damaged() const { return blocks_.damaged(); }
  // What the caches hold now: 2 bytes a sample of each pool in use, and tree nodes.
  size_t cache_bytes() const;
  // Gives the tree nodes' memory back, up to 16 MiB: for an epoch that is over but for a few late
  // substitutes.
  void forget_nodes() { blocks_.forget_nodes(); }

 private:
  // A lane and its current pool: the samples [begin, begin + order.size()) of the lane.
  struct Lane {
    uint64_t start = 0;   // position of the lane in the block order
    uint64_t length = 0;  // samples of the lane
    uint64_t begin = 0;
    Permutation order;
    std::vector<BlockRun> runs;
  };
  Lane& lane_at(uint64_t g);
  std::unique_ptr<Lane> make_lane(uint64_t residue) const;
  void load_pool(Lane& lane, uint64_t residue, uint64_t t);
  static uint64_t sample_at(Lane& lane, uint64_t i);

  const BlockTree& tree_;
  OrderShape shape_;
  unsigned lane_bits_;
  DigitReversal reversal_;
  Key pool_key_;
  Permutation global_;
  BlockOrder blocks_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by residue, g mod L
};

}  // namespace headrace
