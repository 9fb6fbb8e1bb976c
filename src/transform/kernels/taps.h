// SPDX-License-Identifier: Apache-2.0
//
// Taps: which source pixels make up each pixel of one axis, with which weights.
//
// Weights are Pillow's: the antialiased filter in doubles, normalised, rounded to 22 bits.
// Vectors multiply 16 bits by 16, so a weight w is kept as two numbers,
//
//   w = high * 2^11 + low,   -1024 <= low < 1024
//
// and the sum over pixels p is (Σ high·p) * 2^11 + Σ low·p: Pillow's sum to the last bit
// for one more multiply-add.  In memory, per output, `pairs` times
//
//   | i16 high[2k] | i16 high[2k+1] | i16 low[2k] | i16 low[2k+1] |
#pragma once

#include <cstdint>
#include <vector>

#include "transform/geometry/geometry.h"

namespace headrace {

inline constexpr int kWeightBits = 22;
inline constexpr int kSplitBits = 11;
inline constexpr int kRound = 1 << (kWeightBits - 1);

struct TapPair {
  int16_t high[2];
  int16_t low[2];
};

// An axis to resample: source [begin, end) becomes `size` pixels, of which [first, first + count)
// are wanted, from the far end if `reverse`.  Taps stay within source pixels [low, high).  Wanted
// pixels beyond [0, size) are those that `border` puts there.
struct Axis {
  double begin = 0;
  double end = 0;
  int size = 0;
  int first = 0;
  int count = 0;
  int low = 0;
  int high = 0;
  Filter filter = Filter::kBilinear;
  bool reverse = false;
  Border border = Border::kConstant;  // all that is wanted is inside

  bool reaches_outside() const { return first < 0 || first + count > size; }
  // Which of the `size` pixels is the i-th wanted.
  int wanted(int i) const {
    return border == Border::kConstant ? first + i : within(first + i, size, border);
  }
};

// One thread at a time; build() keeps the memory.
class Taps {
 public:
  void build(const Axis& axis);

  int count() const { return count_; }
  // The source pixels used at all; start() counts from low().
  int low() const { return low_; }
  int high() const { return high_; }
  // Nothing but a copy: output i is source pixel low() + i (or the reverse of it).
  bool is_copy() const { return is_copy_; }

  // Pairs per output, the same for all: 1 or an even number; surplus weights are 0.
  int pairs() const { return pairs_; }
  int start(int i) const { return starts_[static_cast<size_t>(i)]; }
  int used(int i) const { return used_[static_cast<size_t>(i)]; }  // taps, at most 2 * pairs()
  const TapPair* weights(int i) const {
    return weights_.data() + static_cast<ptrdiff_t>(i) * pairs_;
  }

 private:
  template <typename F>
  void fill(const Axis& axis, double radius, F filter);
  void fill_nearest(const Axis& axis);
  void shape(const Axis& axis, int most);
  void finish();
  void put(int i, int k, int32_t weight);

  int count_ = 0;
  int pairs_ = 1;
  int low_ = 0;
  int high_ = 0;
  bool is_copy_ = false;
  std::vector<int32_t> starts_;
  std::vector<int32_t> used_;
  std::vector<TapPair> weights_;
  std::vector<double> scratch_;
};

}  // namespace headrace
