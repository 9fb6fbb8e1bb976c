// SPDX-License-Identifier: Apache-2.0
//
// For tests: the order of design section 2 written down as directly as possible,
// with everything materialised.  It shares the keys and the random numbers with
// the real one, and no other code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "plan/shape.h"

namespace headrace::reference {

inline std::vector<uint64_t> shuffled(Key key, uint64_t n) {
  std::vector<uint64_t> a(n);
  std::iota(a.begin(), a.end(), uint64_t{0});
  Rng rng(key);
  for (uint64_t i = 0; i < n; ++i) std::swap(a[i], a[i + rng.below(n - i)]);
  return a;
}

inline uint64_t reversed(uint64_t x, uint64_t lanes) {
  uint64_t y = 0;
  for (uint64_t bit = 1; bit < lanes; bit *= 2) y = 2 * y + (x & bit ? 1 : 0);
  return y;
}

struct Shape {
  std::vector<uint32_t> sizes;
  uint32_t fan_out = 827;
  OrderShape order;
  uint64_t seed = 0;
  std::string source;
  uint64_t epoch = 0;
  uint64_t reassign_every = 1;

  uint64_t samples() const { return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}); }
  Key key() const { return Key(seed).with("order").with(source); }
};

// All samples in the order of their blocks below the node (block mod stride).
inline void append_blocks(const Shape& s, uint64_t level, uint64_t block, uint64_t stride,
                          std::vector<uint64_t>& out) {
  if (block + stride >= s.sizes.size()) {  // a single block is left
    if (block >= s.sizes.size()) return;
    uint64_t first = std::accumulate(s.sizes.begin(), s.sizes.begin() + static_cast<int64_t>(block),
                                     uint64_t{0});
    for (uint32_t k = 0; k < s.sizes[block]; ++k) out.push_back(first++);
    return;
  }
  std::vector<uint64_t> kids;
  for (uint64_t j = 0; j < s.fan_out && block + j * stride < s.sizes.size(); ++j) {
    kids.push_back(block + j * stride);
  }
  const Key key = s.key().with("blocks").with(s.epoch / s.reassign_every).with(level).with(block);
  for (const uint64_t j : shuffled(key, kids.size())) {
    append_blocks(s, level + 1, kids[j], stride * s.fan_out, out);
  }
}

struct Sequence {
  std::vector<uint64_t> samples;                      // by position
  std::vector<std::pair<uint64_t, uint64_t>> places;  // (lane, t)
  std::vector<uint64_t> pools;                        // a number of its own for each pool
};

inline Sequence pooled(const Shape& s) {
  std::vector<uint64_t> blocks;
  append_blocks(s, 0, 0, 1, blocks);
  const uint64_t n = blocks.size();
  const uint64_t lanes = s.order.lanes;
  const uint64_t pool = s.order.pool;
  Sequence out{std::vector<uint64_t>(n), {}, std::vector<uint64_t>(n)};
  uint64_t q = 0;
  uint64_t pools = 0;
  for (uint64_t lane = 0; lane < lanes; ++lane) {
    const uint64_t residue = reversed(lane, lanes);
    uint64_t room = pool - pool * residue / lanes;  // the first pool lacks the stagger
    uint64_t number = 0;
    for (uint64_t g = residue; g < n;) {
      std::vector<uint64_t> members;
      for (; members.size() < room && g < n; g += lanes) members.push_back(g);
      const Key key = s.key().with("pool").with(s.epoch).with(lane).with(number++);
      const std::vector<uint64_t> order = shuffled(key, members.size());
      for (size_t i = 0; i < members.size(); ++i) {
        out.samples[members[i]] = blocks[q + order[i]];
        out.pools[members[i]] = pools;
      }
      q += members.size();
      room = pool;
      ++pools;
    }
  }
  for (uint64_t g = 0; g < n; ++g) out.places.emplace_back(reversed(g % lanes, lanes), g / lanes);
  return out;
}

inline Sequence sequence(const Shape& s) {
  if (s.order.mode == OrderMode::kPool) return pooled(s);
  const uint64_t n = s.samples();
  Sequence out{std::vector<uint64_t>(n), {}, std::vector<uint64_t>(n)};
  std::iota(out.samples.begin(), out.samples.end(), uint64_t{0});
  if (s.order.mode == OrderMode::kGlobal) {
    out.samples = shuffled(s.key().with("global").with(s.epoch), n);
  }
  for (uint64_t g = 0; g < n; ++g) out.places.emplace_back(0, g);
  return out;
}

// The positions of a rank's part of the step of `batch` positions at g.
inline std::vector<uint64_t> part(const Sequence& s, uint64_t g, uint64_t batch, uint64_t rank,
                                  uint64_t world) {
  const uint64_t n = std::min<uint64_t>(batch, s.samples.size() - g);
  std::vector<uint64_t> all(n);
  std::iota(all.begin(), all.end(), g);
  std::sort(all.begin(), all.end(),
            [&](uint64_t a, uint64_t b) { return s.places[a] < s.places[b]; });
  return {all.begin() + static_cast<int64_t>(rank * n / world),
          all.begin() + static_cast<int64_t>((rank + 1) * n / world)};
}

// The sources of the draws [0, draws) under weights that change at given draws.
inline std::vector<uint32_t> mixed(
    Key key, const std::vector<std::pair<uint64_t, std::vector<uint64_t>>>& schedule,
    uint64_t draws) {
  using U128 = unsigned __int128;
  std::vector<uint32_t> out;
  for (size_t i = 0; i < schedule.size(); ++i) {
    const auto& [start, weights] = schedule[i];
    const uint64_t end = i + 1 < schedule.size() ? schedule[i + 1].first : draws;
    uint64_t least = uint64_t{1} << 32;
    for (const uint64_t w : weights) least = w > 0 ? std::min(least, w) : least;
    const uint64_t m = std::max<uint64_t>(64, ((uint64_t{1} << 32) + least - 1) / least);
    for (uint64_t block = 0; out.size() < end; ++block) {
      std::vector<uint32_t> sources;
      uint64_t below = 0;
      for (uint32_t k = 0; k < weights.size(); ++k) {
        const uint64_t above = below + weights[k];
        const auto count = [&](uint64_t g) {
          return static_cast<uint64_t>(U128{above} * g >> 32) -
                 static_cast<uint64_t>(U128{below} * g >> 32);
        };
        sources.insert(sources.end(), count((block + 1) * m) - count(block * m), k);
        below = above;
      }
      for (const uint64_t j : shuffled(key.with(start).with(block), m)) {
        if (out.size() < end) out.push_back(sources[j]);
      }
    }
  }
  return out;
}

}  // namespace headrace::reference
