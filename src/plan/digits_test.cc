// SPDX-License-Identifier: Apache-2.0
#include "plan/digits.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(DigitReversalTest, ReadsDigitsBackwards) {
  EXPECT_EQ(DigitReversal(2, 4).reverse(0b0011), 0b1100u);
  EXPECT_EQ(DigitReversal(10, 5).reverse(12), 21000u);
  EXPECT_EQ(DigitReversal(1024, 2).reverse(1023), 1023u * 1024);
  EXPECT_EQ(DigitReversal(2, 0).reverse(0), 0u);
}

TEST(DigitReversalTest, CountsAsCountingOneByOneDoes) {
  for (const auto& [base, digits] :
       {std::pair{2, 0u}, {2, 1u}, {2, 5u}, {3, 3u}, {7, 2u}, {5, 1u}}) {
    const DigitReversal r(static_cast<uint64_t>(base), digits);
    for (uint64_t bound = 0; bound <= r.size(); ++bound) {
      uint64_t count = 0;
      for (uint64_t x = 0; x <= r.size(); ++x) {
        ASSERT_EQ(r.count_below(x, bound), count)
            << base << '^' << digits << ' ' << x << ' ' << bound;
        if (x < r.size()) count += r.reverse(x) < bound;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
