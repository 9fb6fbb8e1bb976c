// SPDX-License-Identifier: Apache-2.0
#include "plan/block_order.h"

#include <algorithm>

#include "plan/permutation.h"

namespace headrace {
namespace {

// A level has less than 2^58 nodes: its number fits above the place.
uint64_t name_of(const TreeNode& node) {
  return uint64_t{node.level} << 58 | node.place;
}

}  // namespace

size_t BlockOrder::bytes_of(const Ordered& entry) {
  constexpr size_t kLinks = 64;  // of the list and the map
  return sizeof(Ordered) + kLinks + entry.child.capacity() * sizeof(uint16_t) +
         entry.ends.capacity() * sizeof(uint64_t);
}

void BlockOrder::put_in_order(Ordered& entry, uint64_t samples) {
  entry.child.resize(entry.children.count);
  entry.ends.resize(entry.children.count);
  fill_permutation(key_.with(entry.node.level).with(entry.node.block), entry.child);
  uint64_t end = 0;
  for (size_t j = 0; j < entry.child.size(); ++j) {
    end += tree_.samples_of(entry.node, entry.children, entry.child[j]);
    entry.ends[j] = end;
  }
  damaged_ |= end != samples;
}

void BlockOrder::drop_oldest() {
  bytes_ -= bytes_of(entries_.back());
  by_node_.erase(name_of(entries_.back().node));
  entries_.pop_back();
}

void BlockOrder::forget_nodes() {
  by_node_.clear();
  entries_.clear();
  bytes_ = 0;
}

const BlockOrder::Ordered& BlockOrder::load(const TreeNode& node, uint64_t samples) {
  const auto found = by_node_.find(name_of(node));
  if (found != by_node_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front();
  }
  entries_.push_front({node, tree_.children(node), {}, {}});
  put_in_order(entries_.front(), samples);
  by_node_.emplace(name_of(node), entries_.begin());
  bytes_ += bytes_of(entries_.front());
  while (bytes_ > limit_ && entries_.size() > 1) drop_oldest();
  return entries_.front();
}

// The last-level node of position q and the place in it of its child; q becomes
// the position within that child.
const BlockOrder::Ordered* BlockOrder::descend(uint64_t& q, size_t& j) {
  TreeNode node;
  uint64_t samples = tree_.samples();
  for (;;) {
    const Ordered& entry = load(node, samples);
    const auto end = std::upper_bound(entry.ends.begin(), entry.ends.end(), q);
    if (end == entry.ends.end()) return nullptr;
    j = static_cast<size_t>(end - entry.ends.begin());
    const uint64_t before = j > 0 ? entry.ends[j - 1] : 0;
    q -= before;
    if (entry.children.blocks) return &entry;
    samples = *end - before;
    node = tree_.child(node, entry.children, entry.child[j]);
  }
}

// Appends runs from position q on, as far as one node goes; the positions they cover.
uint64_t BlockOrder::append(uint64_t q, uint64_t begin, uint64_t count,
                            std::vector<BlockRun>& out) {
  size_t j = 0;
  const Ordered* entry = descend(q, j);
  if (entry == nullptr) return 0;
  uint64_t covered = 0;
  uint64_t before = j > 0 ? entry->ends[j - 1] : 0;
  for (; j < entry->ends.size() && covered < count; ++j) {
    const uint64_t size = entry->ends[j] - before - q;
    before = entry->ends[j];
    if (size == 0) continue;
    const uint64_t block = entry->node.block + entry->child[j] * entry->children.stride;
    const uint64_t sample = tree_.first_sample(block) + q;
    damaged_ |= sample >= tree_.samples() || size > tree_.samples() - sample;
    out.push_back({begin + covered, sample});
    covered += size;
    q = 0;
  }
  return covered;
}

void BlockOrder::runs(uint64_t q, uint64_t count, std::vector<BlockRun>& out) {
  out.clear();
  for (uint64_t done = 0; done < count;) {
    const uint64_t covered = append(q + done, done, count - done, out);
    damaged_ |= covered == 0;
    if (damaged_) return;  // sums that lie could make this loop endless
    done += covered;
  }
}

}  // namespace headrace
