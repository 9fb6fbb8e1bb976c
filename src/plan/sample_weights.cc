// SPDX-License-Identifier: Apache-2.0
#include "plan/sample_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/rng.h"

namespace headrace {
namespace {

using U128 = unsigned __int128;

constexpr uint64_t kMaxSum = uint64_t{1} << 63;
constexpr uint64_t kMaxDraws = uint64_t{1} << 40;

}  // namespace

Result<std::shared_ptr<const SampleWeights>> SampleWeights::make(std::span<const uint64_t> weights,
                                                                 uint64_t draws) {
  if (draws < 1 || draws > kMaxDraws)
    return invalid(fmt::format("an epoch of {} draws: 1 to {} are possible", draws, kMaxDraws));
  std::shared_ptr<SampleWeights> out(new SampleWeights);
  out->draws_ = draws;
  out->ends_.reserve(weights.size());
  uint64_t sum = 0;
  for (const uint64_t weight : weights) {
    if (weight >= kMaxSum - sum) return invalid("the weights sum to 2^63 or more");
    out->ends_.push_back(sum += weight);
  }
  if (sum == 0) return invalid("all weights are 0: there is nothing to draw from");
  return std::shared_ptr<const SampleWeights>(std::move(out));
}

uint64_t SampleWeights::draws_before(uint64_t sum, uint64_t start) const {
  return static_cast<uint64_t>((static_cast<U128>(sum) * draws_ + start) / ends_.back());
}

Result<std::vector<uint32_t>> SampleWeights::blocks(std::span<const uint32_t> samples) const {
  std::vector<uint32_t> out;
  uint64_t last = 0;
  uint64_t before = 0;
  for (const uint32_t n : samples) {
    last += n;
    if (last > ends_.size()) return internal("blocks of more samples than there are weights");
    const uint64_t draws = last == 0 ? 0 : draws_before(ends_[last - 1], 0);
    if (draws - before > std::numeric_limits<uint32_t>::max())
      return invalid("more than 2^32 draws would fall into one block: give samples= less");
    out.push_back(static_cast<uint32_t>(draws - before));
    before = draws;
  }
  if (last != ends_.size()) return internal("weights of more samples than the blocks have");
  return out;
}

uint64_t SampleWeights::start(uint64_t seed, std::string_view source, uint64_t epoch) const {
  return Rng(Key(seed).with("weights").with(source).with(epoch)).below(ends_.back());
}

SampleWeights::Draw SampleWeights::at(uint64_t start, uint64_t v) const {
  // The first sample whose draws end beyond v: D·C_(i+1) + r >= (v + 1)·W.
  const U128 wanted = static_cast<U128>(v + 1) * ends_.back() - start;
  const auto least = static_cast<uint64_t>((wanted + draws_ - 1) / draws_);
  const auto found = std::lower_bound(ends_.begin(), ends_.end(), least);
  Draw out;
  out.sample = static_cast<uint64_t>(found - ends_.begin());
  const uint64_t before = out.sample == 0 ? 0 : ends_[out.sample - 1];
  out.repeat = v - draws_before(before, start);
  return out;
}

Hash128 SampleWeights::fingerprint() const {
  return Hasher().add("weights").add(draws_).add(std::as_bytes(std::span(ends_))).finish();
}

}  // namespace headrace
