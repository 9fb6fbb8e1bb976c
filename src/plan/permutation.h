// SPDX-License-Identifier: Apache-2.0
//
// Keyed permutations of [0, n): the same key and n give the same permutation on
// every machine.  Frozen by golden tests (plan_version 1).
//
//   n <= 65,536   Fisher-Yates, exactly uniform, 2 bytes an entry.  It runs
//                 forwards, so entry i is final after i + 1 steps: a reader that
//                 goes from left to right pays one step a look-up, and never
//                 waits for the whole table.
//   above         a Feistel network, no memory, about 40 ns a look-up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace headrace {

inline constexpr uint64_t kTableLimit = 65536;

// A Feistel network over pairs (x, y), x < a, y < b, where a·b is the least
// product of near-equal sides that holds n: a·b - n < a, so that walking on from
// a result >= n (cycle walking) happens once in sqrt(n) look-ups.
// Immutable, hence thread-safe.
class Feistel {
 public:
  Feistel() = default;
  // 1 <= n <= 2^63.  Uneven on tiny domains: callers use it above kTableLimit.
  Feistel(Key key, uint64_t n);

  uint64_t at(uint64_t i) const;           // i < n
  uint64_t inverse(uint64_t value) const;  // inverse(at(i)) == i

 private:
  static constexpr size_t kRounds = 8;
  uint64_t forward(uint64_t i) const;
  uint64_t backward(uint64_t i) const;

  uint64_t n_ = 0;
  uint64_t a_ = 1;
  uint64_t b_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

// One thread at a time: at() fills the table as far as it needs.
class Permutation {
 public:
  // Starts over with another key and size; keeps the memory.
  void reset(Key key, uint64_t n);

  uint64_t size() const { return n_; }
  uint64_t at(uint64_t i) {  // i < size()
    if (n_ > kTableLimit) return feistel_.at(i);
    while (done_ <= i) draw_next();
    return table_[i];
  }
  size_t memory_bytes() const { return table_.capacity() * sizeof(uint16_t); }

 private:
  void draw_next() {
    const uint64_t other = done_ + rng_.below(n_ - done_);
    std::swap(table_[done_], table_[other]);
    ++done_;
  }

  uint64_t n_ = 0;
  uint64_t done_ = 0;  // entries [0, done_) of the table are final
  Rng rng_{Key(0)};
  std::vector<uint16_t> table_;
  Feistel feistel_;
};

// The whole permutation of [0, out.size()) at once; out.size() <= kTableLimit.
void fill_permutation(Key key, std::span<uint16_t> out);

}  // namespace headrace
