// SPDX-License-Identifier: Apache-2.0
#include "index/view_blocks.h"

#include <algorithm>

namespace headrace {
namespace {

// Below a quarter, reading a whole block of the base costs more than it saves.
constexpr uint64_t kDenseShare = 4;

uint64_t count_runs(std::span<const uint64_t> samples) {
  uint64_t runs = 1;
  for (size_t i = 1; i < samples.size(); ++i) runs += samples[i] < samples[i - 1];
  return runs;
}

std::vector<uint32_t> even_stretches(uint64_t size, uint64_t length) {
  std::vector<uint32_t> out;
  for (uint64_t at = 0; at < size; at += length)
    out.push_back(static_cast<uint32_t>(std::min(length, size - at)));
  return out;
}

// Walks the samples in stretches that lie in one block of the base.
class Follower {
 public:
  Follower(const Blocks& base, uint64_t mean, ViewBlocks& out)
      : base_(base), mean_(mean), out_(out), count_(base.samples.size(), 0) {
    uint64_t begin = 0;
    for (const uint32_t n : base.samples) {
      out_.base_begin.push_back(begin);
      begin += n;
    }
  }

  void run(std::span<const uint64_t> samples) {
    for (size_t i = 0; i < samples.size();) {
      if (i > 0 && samples[i] < samples[i - 1]) close();
      const size_t block = block_of(samples[i]);
      const uint64_t end = out_.base_begin[block] + base_.samples[block];
      // Repeats may make more of a block than it is: then it is several.
      size_t n = 1;
      while (n < base_.samples[block] && i + n < samples.size() && samples[i + n] < end &&
             samples[i + n] >= samples[i + n - 1])
        ++n;
      add(block, n);
      i += n;
    }
    close();
    for (size_t b = 0; b < count_.size(); ++b)
      out_.is_dense.push_back(count_[b] * kDenseShare >= base_.samples[b]);
  }

 private:
  size_t block_of(uint64_t sample) const {
    const auto after = std::upper_bound(out_.base_begin.begin(), out_.base_begin.end(), sample);
    return static_cast<size_t>(after - out_.base_begin.begin()) - 1;
  }
  void add(size_t block, uint64_t n) {
    if (open_ > 0 && open_ + n > mean_) close();
    open_ += n;
    count_[block] += n;
  }
  void close() {
    if (open_ > 0) out_.blocks.samples.push_back(static_cast<uint32_t>(open_));
    open_ = 0;
  }

  const Blocks& base_;
  const uint64_t mean_;
  ViewBlocks& out_;
  std::vector<uint64_t> count_;  // of the view's samples in each block of the base
  uint64_t open_ = 0;            // samples of the block at hand
};

}  // namespace

ViewBlocks cut_view(const Blocks& base, uint64_t base_size, std::span<const uint64_t> samples) {
  ViewBlocks out;
  out.blocks.shared = base.shared;
  const uint64_t size = samples.size();
  if (size == 0 || base_size == 0) return out;
  const auto filled = static_cast<uint64_t>(
      std::count_if(base.samples.begin(), base.samples.end(), [](uint32_t n) { return n > 0; }));
  const uint64_t mean = std::max<uint64_t>(1, base_size / std::max<uint64_t>(1, filled));
  const uint64_t runs = count_runs(samples);
  if (runs > 1 && size / runs < mean)
    out.blocks.samples = even_stretches(size, mean);
  else
    Follower(base, mean, out).run(samples);
  out.blocks.bytes = static_cast<uint64_t>(
      static_cast<double>(base.bytes) / static_cast<double>(base_size) * static_cast<double>(size));
  return out;
}

}  // namespace headrace
