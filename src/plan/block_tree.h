// SPDX-License-Identifier: Apache-2.0
//
// BlockTree: how many samples each block has, summed so that a position in a
// shuffled order of blocks is found by descending a few nodes.
//
// Blocks hang in a tree of strides.  With fan-out F the root's children are the
// blocks ≡ 0, 1, … F-1 mod F; the children of the node of the blocks ≡ m mod s
// are those ≡ m, m+s, m+2s, … mod s·F.  So each node is a sample of the whole
// data set, and permuting every node's children permutes all blocks.
//
//   level 0        all blocks                  1 entry
//   level d        blocks ≡ m mod F^d          F^d entries   u64 samples ("inner")
//   level depth    one block each              K entries     u32 samples ("last")
//
// Each level lies in *tree order*: the children of one node side by side, nodes
// in the order of their parents.  That is the order of m with its base-F digits
// reversed; the last level has holes there (F^depth > K), which are closed up.
// Offsets are arithmetic: nothing but the sums is stored.
//
//   K = 5, F = 2:   level 1:  {0 2 4} {1 3}      level 2: {0 4} {2} {1} {3}
//                   level 3:  0 4 2 1 3
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "plan/digits.h"

namespace headrace {

inline constexpr uint32_t kFanOut =
    827;  // a prime far from 2^n and 10^n and their fractions: docs/adr/0002

// The tables as they lie in memory or in a mapped sidecar; borrowed.
struct BlockTables {
  std::span<const uint64_t> inner;         // levels 1 … depth-1, one after the other, tree order
  std::span<const uint32_t> last;          // samples of each block, tree order
  std::span<const uint64_t> first_sample;  // of each block, natural order
  uint64_t samples = 0;
  uint64_t filled = 0;  // blocks with at least one sample
};

struct TreeNode {
  unsigned level = 0;
  uint64_t block = 0;  // the least block in it: it holds the blocks ≡ block mod F^level
  uint64_t place = 0;  // in its level, in tree order
};

struct TreeChildren {
  uint64_t count = 0;
  uint64_t place = 0;   // of the first one, in their level
  uint64_t stride = 0;  // child j begins with block parent.block + j·stride
  bool blocks = false;  // each child is one block
};

// Immutable, hence thread-safe.  Moving it keeps views valid.
class BlockTree {
 public:
  // Sums up the samples of each block, in natural order.  12 bytes a block.
  static Result<BlockTree> build(std::span<const uint32_t> sizes, uint32_t fan_out = kFanOut);
  // Looks at tables it does not own; `owner` keeps them alive.  Checks the
  // lengths and the top sum, not the rest: that is verify(), or the sidecar's
  // checksum.  Wrong tables give wrong samples, reported by Order::damaged(),
  // never a read outside of them.
  static Result<BlockTree> view(const BlockTables& tables, std::shared_ptr<const void> owner,
                                uint32_t fan_out = kFanOut);

  BlockTree(BlockTree&&) = default;
  BlockTree& operator=(BlockTree&&) = default;
  BlockTree(const BlockTree&) = delete;
  BlockTree& operator=(const BlockTree&) = delete;

  uint64_t blocks() const { return tables_.last.size(); }
  uint64_t filled_blocks() const { return tables_.filled; }
  uint64_t samples() const { return tables_.samples; }
  const BlockTables& tables() const { return tables_; }

  uint64_t first_sample(uint64_t block) const { return tables_.first_sample[block]; }
  // The block of a sample, sample < samples().  O(log K).
  uint64_t block_of(uint64_t sample) const;

  TreeChildren children(const TreeNode& node) const;
  TreeNode child(const TreeNode& node, const TreeChildren& children, uint64_t j) const;
  uint64_t samples_of(const TreeNode& node, const TreeChildren& children, uint64_t j) const {
    const uint64_t place = children.place + j;
    return children.blocks ? tables_.last[place] : tables_.inner[inner_at_[node.level] + place];
  }

  // Every sum against every other.  O(K).
  Status verify() const;

 private:
  struct Owned {
    std::vector<uint64_t> inner;
    std::vector<uint32_t> last;
    std::vector<uint64_t> first_sample;
  };
  BlockTree(uint64_t blocks, uint32_t fan_out);
  unsigned depth() const { return static_cast<unsigned>(strides_.size()); }
  void fill(std::span<const uint32_t> sizes, Owned& tables) const;
  void sum_inner_levels(std::vector<uint64_t>& inner) const;
  Status verify_node(const TreeNode& node, uint64_t samples) const;

  uint32_t fan_out_;
  std::vector<uint64_t> strides_;   // F^0 … F^(depth-1)
  std::vector<uint64_t> inner_at_;  // where level d+1 begins in `inner`
  DigitReversal reversal_;          // of the places of level depth-1
  BlockTables tables_;
  std::shared_ptr<const void> owner_;  // of what tables_ borrows
};

}  // namespace headrace
