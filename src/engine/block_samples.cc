// SPDX-License-Identifier: Apache-2.0
#include "engine/block_samples.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr size_t kStride = 64;

}  // namespace

BlockSamples::BlockSamples(const Blocks& blocks) : samples_(blocks.samples) {
  uint64_t first = 0;
  for (size_t k = 0; k < samples_.size(); ++k) {
    if (k % kStride == 0) first_.push_back(first);
    first += samples_[k];
  }
}

BlockSamples::Range BlockSamples::of(uint64_t sample) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), sample);
  if (after == first_.begin()) return {};
  uint64_t end = *std::prev(after);
  for (auto k = static_cast<size_t>(after - first_.begin() - 1) * kStride; k < samples_.size(); ++k)
    if ((end += samples_[k]) > sample) return {end - samples_[k], samples_[k]};
  return {};
}

}  // namespace headrace
