// SPDX-License-Identifier: Apache-2.0
#include "engine/read_ahead.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

namespace headrace {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kMiB = uint64_t{1} << 20;

// A store that answers after `latency_ms` plus bytes at `link` (bytes a ms, of all reads together;
// 0: no limit).  Whenever one completes, as many are sent as the read-ahead allows.
uint64_t run_for(ReadAhead& ahead, uint64_t latency_ms, uint64_t link, uint64_t read_bytes,
                 uint64_t ms) {
  uint64_t now = 1000 * kMillisecond;
  uint64_t link_free = now;
  std::deque<std::pair<uint64_t, uint64_t>> under_way;  // sent, done
  for (const uint64_t end = now + ms * kMillisecond; now < end;) {
    while ((under_way.size() + 1) * read_bytes <= std::max(ahead.bytes(), read_bytes)) {
      uint64_t done = now + latency_ms * kMillisecond;
      if (link > 0) done = link_free = std::max(link_free, done) + read_bytes * kMillisecond / link;
      under_way.emplace_back(now, done);
    }
    const auto [sent, done] = under_way.front();
    under_way.pop_front();
    now = done;
    ahead.completed(read_bytes, sent, done);
  }
  return ahead.bytes();
}

TEST(ReadAheadTest, grows_to_the_limit_where_nothing_else_holds_it_back) {
  ReadAhead ahead(32 * kMiB, 512 * kMiB);
  EXPECT_EQ(ahead.bytes(), 32 * kMiB);
  EXPECT_EQ(run_for(ahead, 50, 0, 100'000, 2000), 512 * kMiB);
}

TEST(ReadAheadTest, stays_near_latency_times_bandwidth_of_a_limited_link) {
  ReadAhead ahead(1 * kMiB, 4096 * kMiB);
  const uint64_t link = 1'000'000;  // bytes a ms: 1 GB/s
  const uint64_t needed = 50 * link;
  const uint64_t got = run_for(ahead, 50, link, 100'000, 4000);
  EXPECT_GE(got, needed);
  EXPECT_LE(got, 3 * needed) << "a queue is no reason for a longer one";
}

TEST(ReadAheadTest, near_storage_needs_no_more_than_the_least) {
  ReadAhead ahead(32 * kMiB, 512 * kMiB);
  for (uint64_t k = 0; k < 100'000; ++k)
    ahead.completed(100'000, k * 20'000, k * 20'000 + 15'000);  // 5 GB/s, 15 us each
  EXPECT_EQ(ahead.bytes(), 32 * kMiB);
}

TEST(ReadAheadTest, long_reads_count_by_their_own_time_not_by_that_of_short_ones) {
  ReadAhead ahead(1 * kMiB, 512 * kMiB);
  uint64_t now = kMillisecond;
  for (int k = 0; k < 200; ++k, now += kMillisecond) ahead.completed(1000, now, now + kMillisecond);
  // 4 MiB every ms, each of which takes 42 ms.
  for (int k = 0; k < 1000; ++k, now += kMillisecond)
    ahead.completed(4 * kMiB, now - 42 * kMillisecond, now);
  EXPECT_GE(ahead.bytes(), 42 * 4 * kMiB);
}

TEST(ReadAheadTest, a_far_source_begins_with_what_its_store_says_and_limits_may_change) {
  ReadAhead ahead(32 * kMiB, 512 * kMiB, 256 * kMiB);
  EXPECT_EQ(ahead.bytes(), 256 * kMiB);
  ahead.set_limits(8 * kMiB, 64 * kMiB);
  EXPECT_EQ(ahead.bytes(), 64 * kMiB);
}

}  // namespace
}  // namespace headrace
