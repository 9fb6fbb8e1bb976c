// SPDX-License-Identifier: Apache-2.0
//
// Randomness is named, never a stream that someone must rewind.  A Key is a
// chain of names, (seed, source, epoch, sample, operation); an Rng counts from
// a key.  The same names give the same numbers on any thread, rank or machine.
//
// These functions fix the order of every data set ever shuffled (plan_version 1):
// they are frozen by golden tests and must not change.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace {

// A bijection on 64 bits that mixes every bit into every other (SplitMix64's finaliser).
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline constexpr uint64_t kGolden64 = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

// Immutable, hence thread-safe.
class Key {
 public:
  constexpr explicit Key(uint64_t seed) : state_(mix64(seed + kGolden64)) {}
  // The key one name further: order matters, with(1).with(2) != with(2).with(1).
  constexpr Key with(uint64_t name) const {
    Key k = *this;
    k.state_ = mix64(k.state_ ^ mix64(name + kGolden64)) + kGolden64;
    return k;
  }
  constexpr Key with(std::string_view name) const {
    Key k = with(name.size());
    for (const char c : name) k = k.with(static_cast<unsigned char>(c));
    return k;
  }
  constexpr uint64_t value() const { return state_; }
  constexpr bool operator==(const Key&) const = default;

 private:
  uint64_t state_;
};

// Counts from a key: the i-th number is a function of (key, i).  One thread at a time.
class Rng {
 public:
  constexpr explicit Rng(Key key) : state_(key.value()) {}

  constexpr uint64_t next() {
    state_ += kGolden64;
    return mix64(state_);
  }
  // In [0, n), exactly uniform (multiply-shift with rejection); n > 0.
  constexpr uint64_t below(uint64_t n) {
    using U128 = unsigned __int128;
    U128 m = static_cast<U128>(next()) * n;
    if (static_cast<uint64_t>(m) < n) {
      const uint64_t floor = (0 - n) % n;
      while (static_cast<uint64_t>(m) < floor) m = static_cast<U128>(next()) * n;
    }
    return static_cast<uint64_t>(m >> 64);
  }
  // In [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }

 private:
  uint64_t state_;
};

}  // namespace headrace
