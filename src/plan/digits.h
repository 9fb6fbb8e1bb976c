// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a fixed count of digits, read backwards.  Two places of the order
// rest on it: lanes are bit-reversed positions (base 2), and the tree of strides
// lists its blocks by the digits of their number, lowest first (base 827).
#pragma once

#include <cstdint>

namespace headrace {

// Immutable, hence thread-safe.
class DigitReversal {
 public:
  // base >= 2 and base^digits < 2^64.
  DigitReversal(uint64_t base, unsigned digits);

  uint64_t size() const { return size_; }  // base^digits
  // The digits of x, last one first: 0b0011 -> 0b1100.  x < size().
  uint64_t reverse(uint64_t x) const;
  // How many y < x have reverse(y) < bound.  x, bound <= size(); O(digits).
  uint64_t count_below(uint64_t x, uint64_t bound) const;

 private:
  uint64_t base_;
  unsigned digits_;
  uint64_t size_ = 1;
};

}  // namespace headrace
