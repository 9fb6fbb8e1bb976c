// SPDX-License-Identifier: Apache-2.0
//
// BlockOrder: the blocks of a tree one after the other in a keyed order.  Every
// node permutes its children by a key of its own; position q of the order is
// found by descending from the root, one binary search a node.
//
// Nodes are put in order when first met and kept, the least recently used ones
// going first.  At 10^8 blocks a descent meets three; starting an epoch, one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "plan/block_tree.h"

namespace headrace {

// A piece of the order that lies in one block: its positions from `begin` on are
// the samples `sample`, `sample`+1, … up to the next run's begin.
struct BlockRun {
  uint64_t begin = 0;
  uint64_t sample = 0;
};

// One thread at a time.  Borrows the tree.
class BlockOrder {
 public:
  // 16 MiB: at 10^8 blocks and 2,048 lanes all nodes in use at a time are 12 MB.
  static constexpr size_t kNodeBytes = size_t{16} << 20;

  BlockOrder(const BlockTree& tree, Key key, size_t node_bytes = kNodeBytes)
      : tree_(tree), key_(key), limit_(node_bytes) {}

  // The positions [q, q + count) of the order, as runs with begins counted from q.
  void runs(uint64_t q, uint64_t count, std::vector<BlockRun>& out);

  // The tables contradict themselves; what runs() gave is incomplete.
  bool damaged() const { return damaged_; }
  size_t memory_bytes() const { return bytes_; }
  void forget_nodes();

 private:
  struct Ordered {
    TreeNode node;
    TreeChildren children;
    std::vector<uint16_t> child;  // who comes when
    std::vector<uint64_t> ends;   // and where each ends: samples of the children up to it
  };
  using Entries = std::list<Ordered>;

  const Ordered& load(const TreeNode& node, uint64_t samples);
  void put_in_order(Ordered& entry, uint64_t samples);
  void drop_oldest();
  const Ordered* descend(uint64_t& q, size_t& j);
  uint64_t append(uint64_t q, uint64_t begin, uint64_t count, std::vector<BlockRun>& out);
  static size_t bytes_of(const Ordered& entry);

  const BlockTree& tree_;
  Key key_;
  size_t limit_;
  size_t bytes_ = 0;
  bool damaged_ = false;
  Entries entries_;  // most recently used first
  std::unordered_map<uint64_t, Entries::iterator> by_node_;
};

}  // namespace headrace
