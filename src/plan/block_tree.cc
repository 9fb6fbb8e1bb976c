// SPDX-License-Identifier: Apache-2.0
#include "plan/block_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace headrace {
namespace {

constexpr uint64_t kMaxSamples = uint64_t{1} << 63;

// Children are numbered in 16 bits once they are in order.
Status check_fan_out(uint32_t fan_out) {
  if (fan_out >= 2 && fan_out <= 65536) return {};
  return invalid(fmt::format("the fan-out of a block tree is 2 to 65536, not {}", fan_out));
}

// F^0 … F^(depth-1), where F^depth is the first power that holds all blocks.
std::vector<uint64_t> make_strides(uint64_t blocks, uint64_t fan_out) {
  std::vector<uint64_t> strides{1};
  // Compare by division: the next power may not fit 64 bits.
  while (strides.back() < (blocks + fan_out - 1) / fan_out) {
    strides.push_back(strides.back() * fan_out);
  }
  return strides;
}

}  // namespace

BlockTree::BlockTree(uint64_t blocks, uint32_t fan_out)
    : fan_out_(fan_out),
      strides_(make_strides(blocks, fan_out)),
      reversal_(fan_out, static_cast<unsigned>(strides_.size() - 1)) {
  uint64_t at = 0;
  for (const uint64_t stride : strides_) {
    inner_at_.push_back(at);
    at += stride * fan_out;
  }
}

Result<BlockTree> BlockTree::build(std::span<const uint32_t> sizes, uint32_t fan_out) {
  HEADRACE_TRY(check_fan_out(fan_out));
  BlockTree tree(sizes.size(), fan_out);
  auto owned = std::make_shared<Owned>();
  tree.fill(sizes, *owned);
  tree.tables_ = {.inner = owned->inner, .last = owned->last, .first_sample = owned->first_sample};
  for (const uint32_t size : sizes) {
    tree.tables_.samples += size;
    tree.tables_.filled += size > 0;
  }
  tree.owner_ = std::move(owned);
  return tree;
}

Result<BlockTree> BlockTree::view(const BlockTables& tables, std::shared_ptr<const void> owner,
                                  uint32_t fan_out) {
  HEADRACE_TRY(check_fan_out(fan_out));
  BlockTree tree(tables.last.size(), fan_out);
  const uint64_t inner = tree.inner_at_.back();
  if (tables.inner.size() != inner || tables.first_sample.size() != tables.last.size()) {
    return corrupt(fmt::format("block tables of {} inner, {} last and {} first entries do not fit",
                               tables.inner.size(), tables.last.size(),
                               tables.first_sample.size()));
  }
  if (tables.samples > kMaxSamples || tables.filled > tables.last.size()) {
    return corrupt("block tables count more than there can be");
  }
  tree.tables_ = tables;
  tree.owner_ = std::move(owner);
  const TreeNode root;
  const TreeChildren top = tree.children(root);
  uint64_t sum = 0;
  for (uint64_t j = 0; j < top.count; ++j) sum += tree.samples_of(root, top, j);
  if (sum != tables.samples) {
    return corrupt(fmt::format("block tables hold {} samples, not {}", sum, tables.samples));
  }
  return tree;
}

void BlockTree::fill(std::span<const uint32_t> sizes, Owned& tables) const {
  tables.first_sample.resize(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), tables.first_sample.begin(), uint64_t{0});
  tables.last.reserve(sizes.size());
  tables.inner.resize(inner_at_.back());
  const uint64_t stride = strides_.back();
  for (uint64_t place = 0; place < stride; ++place) {
    uint64_t sum = 0;
    for (uint64_t block = reversal_.reverse(place); block < sizes.size(); block += stride) {
      tables.last.push_back(sizes[block]);
      sum += sizes[block];
    }
    if (depth() > 1) tables.inner[inner_at_[depth() - 2] + place] = sum;
  }
  sum_inner_levels(tables.inner);
}

void BlockTree::sum_inner_levels(std::vector<uint64_t>& inner) const {
  for (unsigned level = depth() - 1; level > 1; --level) {
    const auto below = inner.begin() + static_cast<std::ptrdiff_t>(inner_at_[level - 1]);
    for (uint64_t place = 0; place < strides_[level - 1]; ++place) {
      const auto from = below + static_cast<std::ptrdiff_t>(place * fan_out_);
      inner[inner_at_[level - 2] + place] = std::accumulate(from, from + fan_out_, uint64_t{0});
    }
  }
}

uint64_t BlockTree::block_of(uint64_t sample) const {
  const auto& first = tables_.first_sample;
  // Empty blocks share their first sample with the next one: the last of them is the full one.
  const auto after = std::upper_bound(first.begin(), first.end(), sample);
  return after == first.begin() ? 0 : static_cast<uint64_t>(after - first.begin()) - 1;
}

TreeChildren BlockTree::children(const TreeNode& node) const {
  const uint64_t stride = strides_[node.level];
  if (node.level + 1 < depth()) return {fan_out_, node.place * fan_out_, stride, false};
  // Level depth-1 is complete; of its nodes those of a block < K mod stride have one child more.
  const uint64_t each = blocks() / stride;
  const uint64_t longer = blocks() % stride;
  const uint64_t place = node.place * each + reversal_.count_below(node.place, longer);
  return {each + (node.block < longer), place, stride, true};
}

TreeNode BlockTree::child(const TreeNode& node, const TreeChildren& children, uint64_t j) const {
  return {node.level + 1, node.block + j * children.stride, children.place + j};
}

Status BlockTree::verify() const {
  uint64_t next = 0;
  uint64_t filled = 0;
  for (uint64_t block = 0; block < blocks(); ++block) {
    if (first_sample(block) != next) {
      return corrupt(
          fmt::format("block {} begins at sample {}, not {}", block, first_sample(block), next));
    }
    const uint64_t end = block + 1 < blocks() ? first_sample(block + 1) : samples();
    if (end < next) return corrupt(fmt::format("block {} ends before it begins", block));
    filled += end > next;
    next = end;
  }
  if (filled != filled_blocks()) return corrupt("block tables miscount the blocks with samples");
  return verify_node({}, samples());
}

Status BlockTree::verify_node(const TreeNode& node, uint64_t samples) const {
  const TreeChildren kids = children(node);
  uint64_t sum = 0;
  for (uint64_t j = 0; j < kids.count; ++j) {
    const uint64_t count = samples_of(node, kids, j);
    const TreeNode kid = child(node, kids, j);
    sum += count;
    if (!kids.blocks) {
      HEADRACE_TRY(verify_node(kid, count));
      continue;
    }
    const uint64_t end = kid.block + 1 < blocks() ? first_sample(kid.block + 1) : tables_.samples;
    if (end - first_sample(kid.block) != count) {
      return corrupt(fmt::format("block {} has two counts", kid.block));
    }
  }
  if (sum == samples) return {};
  return corrupt(
      fmt::format("level {}, place {}: {} samples, not {}", node.level, node.place, sum, samples));
}

}  // namespace headrace
