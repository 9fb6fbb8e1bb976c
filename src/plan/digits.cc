// SPDX-License-Identifier: Apache-2.0
#include "plan/digits.h"

#include <algorithm>

namespace headrace {

DigitReversal::DigitReversal(uint64_t base, unsigned digits) : base_(base), digits_(digits) {
  for (unsigned i = 0; i < digits; ++i) size_ *= base;
}

uint64_t DigitReversal::reverse(uint64_t x) const {
  uint64_t reversed = 0;
  for (unsigned i = 0; i < digits_; ++i) {
    reversed = reversed * base_ + x % base_;
    x /= base_;
  }
  return reversed;
}

// Splits the y < x by the first digit, from the top, in which they fall below x:
// above it they share x's digits, below it they are free.  Read backwards, the
// shared digits are the low ones (`shared`), then comes the smaller digit c (of
// weight `unit`), then the free ones.  So the question is, for each digit, how
// many pairs c < digit, free < weight have shared + unit·(c + base·free) < bound.
uint64_t DigitReversal::count_below(uint64_t x, uint64_t bound) const {
  if (x == size_) return bound;
  uint64_t count = 0;
  uint64_t shared = 0;
  uint64_t unit = 1;
  for (uint64_t weight = size_ / base_; weight > 0; weight /= base_) {
    const uint64_t digit = x / weight % base_;
    const uint64_t room = bound > shared ? (bound - shared + unit - 1) / unit : 0;
    const uint64_t pairs = std::min(room, weight * base_);
    count += pairs / base_ * digit + std::min(pairs % base_, digit);
    shared += digit * unit;
    unit *= base_;
  }
  return count;
}

}  // namespace headrace
