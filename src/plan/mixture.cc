// SPDX-License-Identifier: Apache-2.0
#include "plan/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace headrace {
namespace {

using U128 = unsigned __int128;

// 64: with equal halves, fewer draws would hardly be mixed.
constexpr uint64_t kMinBlock = 64;

// 2^62: sums of draws and positions stay below 2^63.
constexpr uint64_t kMaxDraw = uint64_t{1} << 62;

Status too_small(size_t source, double share) {
  return invalid(fmt::format(
      "source {} has a share of {:.2g}, below 2^-20 (one draw in a million): give it more, or none",
      source, share));
}

Status check_change(std::span<const uint64_t> weights, uint64_t draw) {
  uint64_t sum = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] > kWeightOne - sum) return invalid("weights sum to more than 2^32");
    if (weights[k] > 0 && weights[k] < kMinWeight) {
      return too_small(k, static_cast<double>(weights[k]) * 0x1p-32);
    }
    sum += weights[k];
  }
  if (sum != kWeightOne) return invalid(fmt::format("weights sum to {}, not to 2^32", sum));
  if (draw > kMaxDraw) return invalid("weights cannot change after draw 2^62");
  return {};
}

Result<double> sum_of(std::span<const double> shares) {
  double total = 0;
  for (const double share : shares) {
    if (!std::isfinite(share) || share < 0) {
      return invalid(fmt::format("a weight must be a number from 0 on, not {}", share));
    }
    total += share;
  }
  if (!(total > 0) || !std::isfinite(total)) return invalid("no source has a weight above 0");
  return total;
}

// Brings the sum to 2^32: one each to the largest remainders, ties to the earlier source.
void hand_out_rest(std::span<const double> rest, std::vector<uint64_t>& weights) {
  std::vector<size_t> by_rest(weights.size());
  std::iota(by_rest.begin(), by_rest.end(), size_t{0});
  std::sort(by_rest.begin(), by_rest.end(),
            [&](size_t a, size_t b) { return rest[a] != rest[b] ? rest[a] > rest[b] : a < b; });
  uint64_t sum = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  for (size_t i = 0; i < by_rest.size() && sum < kWeightOne; ++i) {
    if (rest[by_rest[i]] == 0) break;
    ++weights[by_rest[i]];
    ++sum;
  }
  // What rounding of the quotients left over or took too much is the largest weight's.
  uint64_t& largest = *std::max_element(weights.begin(), weights.end());
  largest += kWeightOne - sum;  // modulo 2^64: it may go down
}

uint64_t block_size(std::span<const uint64_t> weights) {
  uint64_t least = kWeightOne;
  for (const uint64_t w : weights) {
    if (w > 0) least = std::min(least, w);
  }
  return std::max(kMinBlock, (kWeightOne + least - 1) / least);
}

uint64_t scaled(uint64_t running_sum, uint64_t draws) {
  return static_cast<uint64_t>(static_cast<U128>(running_sum) * draws >> 32);
}

}  // namespace

Result<std::vector<uint64_t>> integer_weights(std::span<const double> shares) {
  HEADRACE_ASSIGN(const double total, sum_of(shares));
  std::vector<uint64_t> weights;
  std::vector<double> rest;
  for (const double share : shares) {
    const double exact = share / total * 0x1p32;
    weights.push_back(static_cast<uint64_t>(exact));
    rest.push_back(exact - std::floor(exact));
  }
  hand_out_rest(rest, weights);
  for (size_t k = 0; k < shares.size(); ++k) {
    if (shares[k] > 0 && weights[k] < kMinWeight) return too_small(k, shares[k] / total);
  }
  return weights;
}

Result<Mixture> Mixture::make(Key key, std::vector<uint64_t> weights) {
  Mixture mixture(key);
  std::vector<uint64_t> offsets(weights.size());
  HEADRACE_TRY(mixture.append(std::move(weights), 0, std::move(offsets)));
  mixture.enter(0, 0);
  return mixture;
}

Result<Mixture> Mixture::restore(Key key, const MixtureState& state) {
  if (state.schedule.empty()) return invalid("the state of a mixture has no weights");
  Mixture mixture(key);
  const WeightChange& now = state.schedule.front();
  if (now.weights.size() != state.offsets.size()) {
    return invalid(fmt::format("the state of a mixture has {} weights and {} offsets",
                               now.weights.size(), state.offsets.size()));
  }
  for (const uint64_t offset : state.offsets) {
    if (offset > kMaxDraw) return invalid("the state of a mixture has an offset above 2^62");
  }
  HEADRACE_TRY(mixture.append(now.weights, now.draw, state.offsets));
  mixture.enter(0, 0);
  for (const WeightChange& change : std::span(state.schedule).subspan(1)) {
    HEADRACE_TRY(mixture.set_weights(change.weights, change.draw));
  }
  return mixture;
}

Status Mixture::append(std::vector<uint64_t> weights, uint64_t draw,
                       std::vector<uint64_t> offsets) {
  HEADRACE_TRY(check_change(weights, draw));
  const uint64_t block = block_size(weights);
  segments_.push_back({draw, block, std::move(weights), std::move(offsets)});
  return {};
}

Status Mixture::set_weights(std::vector<uint64_t> weights, uint64_t draw) {
  if (weights.size() != sources()) {
    return invalid(fmt::format("{} weights for {} sources", weights.size(), sources()));
  }
  if (draw < segments_.back().start) {
    return invalid(
        fmt::format("weights cannot change at draw {}: a later change, at draw {}, is already set",
                    draw, segments_.back().start));
  }
  HEADRACE_TRY(check_change(weights, draw));
  const std::span<const uint64_t> now = counts(draw);
  std::vector<uint64_t> offsets(now.begin(), now.end());
  if (draw == segments_.back().start) segments_.pop_back();  // never came into force
  HEADRACE_TRY(append(std::move(weights), draw, std::move(offsets)));
  enter(segments_.size() - 1, 0);
  return {};
}

size_t Mixture::segment_of(uint64_t draw) const {
  size_t i = segments_.size() - 1;
  while (i > 0 && segments_[i].start > draw) --i;
  return i;
}

std::span<const uint64_t> Mixture::weights_at(uint64_t draw) const {
  return segments_[segment_of(draw)].weights;
}

// Fills the block with each source's quota, still in order, and counts what came before it.
void Mixture::enter(size_t segment, uint64_t block) {
  const Segment& s = segments_[segment];
  cursor_.segment = segment;
  cursor_.block = block;
  cursor_.next = 0;
  cursor_.rng = Rng(key_.with(s.start).with(block));
  cursor_.order.clear();
  cursor_.counts = s.offsets;
  const uint64_t begin = block * s.block;
  uint64_t sum = 0;
  uint64_t had = 0;   // draws of the sources up to k, before the block
  uint64_t will = 0;  // and after it
  for (size_t k = 0; k < s.weights.size(); ++k) {
    sum += s.weights[k];
    const uint64_t before = scaled(sum, begin) - had;
    const uint64_t after = scaled(sum, begin + s.block) - will;
    cursor_.counts[k] += before;
    cursor_.order.insert(cursor_.order.end(), after - before, static_cast<uint32_t>(k));
    had += before;
    will += after;
  }
}

// One step of Fisher-Yates: draw `next` of the block becomes final and is counted.
void Mixture::fold_next() {
  std::vector<uint32_t>& order = cursor_.order;
  const uint64_t i = cursor_.next++;
  std::swap(order[i], order[i + cursor_.rng.below(order.size() - i)]);
  ++cursor_.counts[order[i]];
}

// Counts all draws before `draw`.
void Mixture::seek(uint64_t draw) {
  const size_t segment = segment_of(draw);
  const uint64_t from_start = draw - segments_[segment].start;
  const uint64_t block = from_start / segments_[segment].block;
  const uint64_t into = from_start % segments_[segment].block;
  if (segment != cursor_.segment || block != cursor_.block || into < cursor_.next)
    enter(segment, block);
  while (cursor_.next < into) fold_next();
}

std::span<const uint64_t> Mixture::counts(uint64_t draw) {
  seek(draw);
  return cursor_.counts;
}

MixtureDraw Mixture::at(uint64_t draw) {
  seek(draw);
  fold_next();
  const uint32_t source = cursor_.order[cursor_.next - 1];
  return {source, cursor_.counts[source] - 1};
}

MixtureState Mixture::fold(uint64_t draw) const {
  const size_t from = segment_of(draw);
  MixtureState state{segments_[from].offsets, {}};
  for (size_t i = from; i < segments_.size(); ++i) {
    state.schedule.push_back({segments_[i].start, segments_[i].weights});
  }
  return state;
}

}  // namespace headrace
