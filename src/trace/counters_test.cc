// SPDX-License-Identifier: Apache-2.0
#include "trace/counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "trace/histogram.h"

namespace headrace {
namespace {

TEST(StageCountersTest, ThreadsAddUp) {
  StageCounters counters;
  constexpr uint64_t kThreads = 40;  // more than there are shards
  constexpr uint64_t kTimes = 1000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&counters] {
      for (uint64_t i = 0; i < kTimes; ++i) {
        counters.work(1, 10, 100);
        counters.waited_for_input(3);
        counters.waited_for_room(7);
      }
    });
  uint64_t seen = 0;
  while (seen < kThreads * kTimes / 2) {
    const uint64_t items = counters.snapshot().items;
    EXPECT_GE(items, seen) << "no count goes back";
    seen = items;
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  const StageStats stats = counters.snapshot();
  EXPECT_EQ(stats.items, kThreads * kTimes);
  EXPECT_EQ(stats.bytes, kThreads * kTimes * 10);
  EXPECT_EQ(stats.busy_ns, kThreads * kTimes * 100);
  EXPECT_EQ(stats.wait_input_ns, kThreads * kTimes * 3);
  EXPECT_EQ(stats.wait_room_ns, kThreads * kTimes * 7);
}

TEST(StageCountersTest, AThreadKeepsItsShard) {
  const size_t mine = thread_shard(32);
  EXPECT_EQ(thread_shard(32), mine);
  size_t other = mine;
  std::thread([&] { other = thread_shard(32); }).join();
  EXPECT_EQ(other, (mine + 1) % 32);
}

TEST(StopwatchTest, FollowsTheSteadyClock) {
  const uint64_t before = steady_ns();
  const Stopwatch watch;
  const uint64_t first = watch.ns();
  const uint64_t second = watch.ns();
  EXPECT_LE(first, second);
  EXPECT_LE(second, steady_ns() - before);
}

TEST(HistogramTest, BucketsCoverEveryValueAndAreAQuarterWide) {
  for (size_t b = 0; b < kHistogramBuckets; ++b) {
    const uint64_t low = histogram_floor(b);
    EXPECT_EQ(histogram_bucket(low), b);
    if (b == 0) continue;
    EXPECT_EQ(histogram_bucket(low - 1), b - 1);
    const uint64_t width = low - histogram_floor(b - 1);
    EXPECT_LE(width, std::max<uint64_t>(1, histogram_floor(b - 1) / 4));
  }
  EXPECT_EQ(histogram_bucket(UINT64_MAX), kHistogramBuckets - 1);
}

TEST(HistogramTest, QuantilesAreThoseOfTheSortedValuesWithinAQuarter) {
  Histogram histogram;
  Rng rng{Key(3)};
  std::vector<uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t value = (uint64_t{1} << rng.below(34)) + rng.below(1'000'000);
    values.push_back(value);
    histogram.add(value);
  }
  std::sort(values.begin(), values.end());
  const HistogramStats stats = histogram.snapshot();
  for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto at = static_cast<size_t>(q * static_cast<double>(values.size()));
    const auto exact = static_cast<double>(values[at]);
    EXPECT_NEAR(static_cast<double>(stats.quantile(q)), exact, exact / 4 + 1) << q;
  }
  EXPECT_EQ(stats.quantile(1), values.back());
  EXPECT_EQ(stats.largest, values.back());
  EXPECT_EQ(stats.count, values.size());
  uint64_t sum = 0;
  for (const uint64_t v : values) sum += v;
  EXPECT_EQ(stats.sum, sum);
  EXPECT_DOUBLE_EQ(stats.mean(), static_cast<double>(sum) / static_cast<double>(values.size()));
}

TEST(HistogramTest, WithoutValuesAllIsZero) {
  const HistogramStats stats = Histogram().snapshot();
  EXPECT_EQ(stats.quantile(0.5), 0u);
  EXPECT_EQ(stats.mean(), 0);
  Histogram one;
  one.add(5000);
  EXPECT_LE(one.quantile(0.5), 5000u);
  EXPECT_GE(one.quantile(0.5), 4096u);
}

TEST(HistogramTest, ASpanOfTimeIsTheDifferenceOfTwoSnapshots) {
  Histogram histogram;
  for (int i = 0; i < 100; ++i) histogram.add(1'000'000);
  const HistogramStats before = histogram.snapshot();
  for (int i = 0; i < 10; ++i) histogram.add(10);
  const HistogramStats since = histogram.snapshot().since(before);
  EXPECT_EQ(since.count, 10u);
  EXPECT_EQ(since.sum, 100u);
  EXPECT_LE(since.quantile(0.99), 12u);
}

TEST(HistogramTest, ThreadsAddUp) {
  Histogram histogram;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&histogram, t] {
      for (uint64_t i = 0; i < 5000; ++i) histogram.add(t * 1000 + i);
    });
  histogram.quantile(0.5);
  for (std::thread& thread : threads) thread.join();
  const HistogramStats stats = histogram.snapshot();
  EXPECT_EQ(stats.count, 20'000u);
  EXPECT_EQ(stats.largest, 7999u);
}

}  // namespace
}  // namespace headrace
