// SPDX-License-Identifier: Apache-2.0
#include "plan/order.h"

#include <algorithm>

namespace headrace {
namespace {

using U128 = unsigned __int128;

Key base_key(const OrderName& name) {
  return Key(name.seed).with("order").with(name.source);
}

}  // namespace

Order::Order(const BlockTree& tree, const OrderName& name, const OrderShape& shape)
    : tree_(tree),
      shape_(shape),
      lane_bits_(static_cast<unsigned>(std::countr_zero(shape.lanes))),
      reversal_(2, lane_bits_),
      pool_key_(base_key(name).with("pool").with(name.epoch)),
      blocks_(tree, base_key(name).with("blocks").with(name.epoch / name.reassign_every)) {
  if (shape.mode == OrderMode::kGlobal) {
    global_.reset(base_key(name).with("global").with(name.epoch), samples());
  } else if (shape.mode == OrderMode::kPool) {
    lanes_.resize(std::min<uint64_t>(shape.lanes, samples()));
  }
}

uint32_t Order::lane_of(uint64_t g) const {
  return static_cast<uint32_t>(reversal_.reverse(g & (shape_.lanes - 1)));
}

std::unique_ptr<Order::Lane> Order::make_lane(uint64_t residue) const {
  const uint64_t each = samples() >> lane_bits_;
  const uint64_t longer = samples() & (shape_.lanes - 1);  // residues below it have one more
  const uint64_t number = reversal_.reverse(residue);
  auto lane = std::make_unique<Lane>();
  lane->start = number * each + reversal_.count_below(number, longer);
  lane->length = each + (residue < longer);
  return lane;
}

void Order::load_pool(Lane& lane, uint64_t residue, uint64_t t) {
  const auto lead = static_cast<uint64_t>(static_cast<U128>(shape_.pool) * residue >> lane_bits_);
  const uint64_t pool = (t + lead) / shape_.pool;
  const uint64_t into = (t + lead) % shape_.pool;
  // The first pool lacks its lead, the last one what the lane lacks.
  lane.begin = t - std::min(t, into);
  const uint64_t end = std::min(lane.length, t + (shape_.pool - into));
  const Key key = pool_key_.with(reversal_.reverse(residue)).with(pool);
  lane.order.reset(key, end - lane.begin);
  blocks_.runs(lane.start + lane.begin, end - lane.begin, lane.runs);
}

Order::Lane& Order::lane_at(uint64_t g) {
  const uint64_t residue = g & (shape_.lanes - 1);
  const uint64_t t = t_of(g);
  std::unique_ptr<Lane>& lane = lanes_[residue];
  if (lane == nullptr) lane = make_lane(residue);
  if (t - lane->begin >= lane->order.size()) load_pool(*lane, residue, t);
  return *lane;
}

uint64_t Order::sample_at(Lane& lane, uint64_t i) {
  const uint64_t q = lane.order.at(i);
  const auto after =
      std::upper_bound(lane.runs.begin(), lane.runs.end(), q,
                       [](uint64_t v, const BlockRun& run) { return v < run.begin; });
  if (after == lane.runs.begin()) return 0;  // damaged tables
  return after[-1].sample + (q - after[-1].begin);
}

uint64_t Order::at(uint64_t g) {
  if (shape_.mode == OrderMode::kNone) return g;
  if (shape_.mode == OrderMode::kGlobal) return global_.at(g);
  Lane& lane = lane_at(g);
  return sample_at(lane, t_of(g) - lane.begin);
}

std::optional<uint64_t> Order::substitute(uint64_t g, uint64_t attempt) {
  if (shape_.mode != OrderMode::kPool) {
    if (attempt >= samples()) return std::nullopt;
    return at(static_cast<uint64_t>((static_cast<U128>(g) + attempt) % samples()));
  }
  Lane& lane = lane_at(g);
  const uint64_t size = lane.order.size();
  if (attempt >= size) return std::nullopt;
  return sample_at(lane, (t_of(g) - lane.begin + attempt) % size);
}

size_t Order::cache_bytes() const {
  size_t bytes = blocks_.memory_bytes() + global_.memory_bytes();
  bytes += lanes_.capacity() * sizeof(lanes_[0]);
  for (const auto& lane : lanes_) {
    if (lane == nullptr) continue;
    bytes += sizeof(Lane) + lane->order.memory_bytes() + lane->runs.capacity() * sizeof(BlockRun);
  }
  return bytes;
}

}  // namespace headrace
