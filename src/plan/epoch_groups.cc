// SPDX-License-Identifier: Apache-2.0
#include "plan/epoch_groups.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

// The epoch that is consumed, the one that is read ahead, and a state that is asked for.
constexpr size_t kKeptEpochs = 3;

EpochGroups::Made with_tree(std::shared_ptr<const SampleGroups> groups) {
  // Only a fan-out could be wrong, and this is the usual one.
  auto tree = std::make_shared<const BlockTree>(BlockTree::build(groups->blocks()).value());
  return {std::move(groups), std::move(tree)};
}

Hash128 hash_of(const OrderName& name, OrderMode mode) {
  return Hasher()
      .add(name.seed)
      .add(name.source)
      .add(name.epoch)
      .add(name.reassign_every)
      .add(static_cast<uint64_t>(mode))
      .finish();
}

constexpr uint64_t kPoolWindows = 2;

// The blocks in an order of their own, their samples permuted within pools of two windows.  Asked
// from the begin to the end.
class PooledSamples {
 public:
  PooledSamples(const BlockTree& tree, Key blocks, Key pools)
      : samples_(tree.samples()), blocks_(tree, blocks), key_(pools) {}

  // `pool`: samples of the next one, where those before are used up.
  void take(uint64_t count, uint64_t pool, std::vector<uint32_t>& out) {
    if (used_ == pool_.size()) load(pool);
    for (uint64_t i = 0; i < count; ++i) out.push_back(pool_[used_++]);
  }

 private:
  void load(uint64_t size) {
    size = std::min(size, samples_ - next_);
    blocks_.runs(next_, size, runs_);
    pool_.clear();
    used_ = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const uint64_t end = r + 1 < runs_.size() ? runs_[r + 1].begin : size;
      for (uint64_t i = runs_[r].begin; i < end; ++i)
        pool_.push_back(static_cast<uint32_t>(runs_[r].sample + (i - runs_[r].begin)));
    }
    Rng rng(key_.with(next_));
    for (size_t i = 0; i < pool_.size(); ++i)
      std::swap(pool_[i], pool_[i + rng.below(pool_.size() - i)]);
    next_ += size;
  }

  const uint64_t samples_;
  BlockOrder blocks_;
  const Key key_;
  uint64_t next_ = 0;  // position of the next pool
  size_t used_ = 0;    // of this one
  std::vector<uint32_t> pool_;
  std::vector<BlockRun> runs_;
};

}  // namespace

Result<std::shared_ptr<EpochGroups>> EpochGroups::make(std::shared_ptr<const Grouping> grouping,
                                                       BlockTree samples) {
  if (samples.samples() != grouping->samples())
    return internal("the blocks of the data and the lengths count different samples");
  std::shared_ptr<EpochGroups> out(new EpochGroups(std::move(grouping), std::move(samples)));
  out->as_they_lie_ = with_tree(out->grouping_->as_they_lie());
  return out;
}

EpochGroups::Made EpochGroups::of(const OrderName& name, OrderMode mode) {
  if (mode == OrderMode::kNone) return as_they_lie_;
  const Hash128 wanted = hash_of(name, mode);
  MutexLock lock(mu_);
  auto found = std::find_if(kept_.begin(), kept_.end(),
                            [&](const Kept& kept) { return kept.name == wanted; });
  if (found == kept_.end()) {
    if (kept_.size() == kKeptEpochs) kept_.pop_back();
    kept_.push_back({wanted, make_epoch(name, mode)});
    found = kept_.end() - 1;
  }
  std::rotate(kept_.begin(), found, found + 1);
  return kept_.front().made;
}

EpochGroups::Made EpochGroups::make_epoch(const OrderName& name, OrderMode mode) const {
  const Key key = Key(name.seed).with("groups").with(name.source);
  const uint64_t window = grouping_->rule().window;
  const uint64_t first = 1 + Rng(key.with("first").with(name.epoch)).below(window);
  std::shared_ptr<const SampleGroups> groups;
  if (mode == OrderMode::kGlobal) {
    Permutation order;
    order.reset(key.with("global").with(name.epoch), grouping_->samples());
    groups = grouping_->in_order(
        [&](uint64_t begin, uint64_t count, std::vector<uint32_t>& out) {
          for (uint64_t i = begin; i < begin + count; ++i)
            out.push_back(static_cast<uint32_t>(order.at(i)));
        },
        first);
  } else {
    PooledSamples order(samples_, key.with("blocks").with(name.epoch / name.reassign_every),
                        key.with("pool").with(name.epoch));
    groups = grouping_->in_order(
        [&](uint64_t begin, uint64_t count, std::vector<uint32_t>& out) {
          order.take(count, begin == 0 ? first : kPoolWindows * window, out);
        },
        first);
  }
  return with_tree(std::move(groups));
}

}  // namespace headrace
