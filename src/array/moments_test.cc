// SPDX-License-Identifier: Apache-2.0
#include "array/moments.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace headrace {
namespace {

TEST(moments, are_those_of_the_definition_and_leave_nan_out) {
  Rng rng(Key(3));
  std::vector<float> numbers(5000);
  double sum = 0;
  uint64_t count = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i % 7 == 0 ? std::nanf("") : static_cast<float>(rng.uniform(1000, 1001));
    if (i % 7 != 0) sum += static_cast<double>(numbers[i]), ++count;
  }
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const float v : numbers)
    if (v == v) squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  Moments m;
  m.add(std::as_bytes(std::span(numbers)), DType::kF32);
  EXPECT_EQ(m.count, count);
  EXPECT_EQ(m.nans, numbers.size() - count);
  EXPECT_NEAR(m.mean, mean, 1e-9);
  EXPECT_NEAR(m.deviation(), std::sqrt(squares / static_cast<double>(count)), 1e-9);
  EXPECT_GE(m.min, 1000);
  EXPECT_LE(m.max, 1001);
}

TEST(moments, merged_parts_are_the_whole) {
  std::vector<int16_t> numbers(9999);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int16_t>(i * i % 1013);
  const Bytes all = std::as_bytes(std::span(numbers));
  Moments whole;
  whole.add(all, DType::kI16);
  for (const size_t cut : {size_t{0}, size_t{2}, size_t{4000}, all.size()}) {
    Moments first;
    Moments second;
    first.add(all.first(cut), DType::kI16);
    second.add(all.subspan(cut), DType::kI16);
    first.merge(second);
    EXPECT_EQ(first.count, whole.count);
    EXPECT_NEAR(first.mean, whole.mean, 1e-9);
    EXPECT_NEAR(first.deviation(), whole.deviation(), 1e-9);
    EXPECT_EQ(first.max, whole.max);
  }
}

TEST(moments, of_nothing_are_no_numbers) {
  Moments m;
  m.merge(Moments());
  EXPECT_EQ(m.count, 0u);
  EXPECT_TRUE(std::isnan(m.deviation()));
}

}  // namespace
}  // namespace headrace
