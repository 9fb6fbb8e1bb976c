// SPDX-License-Identifier: Apache-2.0
#include "plan/permutation.h"

#include <cmath>
#include <numeric>

namespace headrace {
namespace {

using U128 = unsigned __int128;

// The least a with a·a >= n, n <= 2^63.
uint64_t ceil_sqrt(uint64_t n) {
  auto a = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (a > 0 && (a - 1) * (a - 1) >= n) --a;  // the root of a rounded n may be off by one
  while (a * a < n) ++a;
  return a;
}

// A number in [0, side) from the other half and the round's key.  Two multiplies
// carry every bit of `half` into the high bits, which the last one scales down.
uint64_t round_value(uint64_t half, uint64_t key, uint64_t side) {
  uint64_t h = (half + key) * 0xbf58476d1ce4e5b9u;
  h ^= h >> 32;
  h *= 0x94d049bb133111ebu;
  return static_cast<uint64_t>((static_cast<U128>(h) * side) >> 64);
}

uint64_t add_mod(uint64_t v, uint64_t d, uint64_t side) {
  v += d;
  return v >= side ? v - side : v;
}

uint64_t sub_mod(uint64_t v, uint64_t d, uint64_t side) {
  return v >= d ? v - d : v + side - d;
}

}  // namespace

Feistel::Feistel(Key key, uint64_t n) : n_(n), a_(ceil_sqrt(n)), b_((n + a_ - 1) / a_) {
  Rng rng(key);
  for (uint64_t& k : keys_) k = rng.next();
}

uint64_t Feistel::forward(uint64_t i) const {
  uint64_t x = i / b_;
  uint64_t y = i % b_;
  for (size_t r = 0; r < kRounds; r += 2) {
    x = add_mod(x, round_value(y, keys_[r], a_), a_);
    y = add_mod(y, round_value(x, keys_[r + 1], b_), b_);
  }
  return x * b_ + y;
}

uint64_t Feistel::backward(uint64_t i) const {
  uint64_t x = i / b_;
  uint64_t y = i % b_;
  for (size_t r = kRounds; r > 0; r -= 2) {
    y = sub_mod(y, round_value(x, keys_[r - 1], b_), b_);
    x = sub_mod(x, round_value(y, keys_[r - 2], a_), a_);
  }
  return x * b_ + y;
}

uint64_t Feistel::at(uint64_t i) const {
  do i = forward(i);
  while (i >= n_);
  return i;
}

uint64_t Feistel::inverse(uint64_t value) const {
  do value = backward(value);
  while (value >= n_);
  return value;
}

void Permutation::reset(Key key, uint64_t n) {
  n_ = n;
  done_ = 0;
  if (n > kTableLimit) {
    feistel_ = Feistel(key, n);
    return;
  }
  rng_ = Rng(key);
  table_.resize(n);
  std::iota(table_.begin(), table_.end(), uint16_t{0});
}

void fill_permutation(Key key, std::span<uint16_t> out) {
  std::iota(out.begin(), out.end(), uint16_t{0});
  Rng rng(key);
  for (size_t i = 0; i < out.size(); ++i) std::swap(out[i], out[i + rng.below(out.size() - i)]);
}

}  // namespace headrace
