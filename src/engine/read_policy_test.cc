// SPDX-License-Identifier: Apache-2.0
#include "engine/read_policy.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr uint64_t kMiB = 1 << 20;

StoreCost far_cost(uint32_t parallel_reads) {
  return {.latency_ns = 50'000'000,
          .bytes_per_second = 100'000'000,
          .parallel_reads = parallel_reads,
          .in_caller = false};
}

TEST(ReadPolicyTest, of_large_reads_few_begin_unless_the_store_takes_any_number) {
  constexpr uint64_t kRun = 4 * kMiB, kMost = 1024 * kMiB;
  const uint64_t each = 5'000'000 + kRun;  // what comes meanwhile, and the run
  EXPECT_EQ(policy_of(far_cost(64), kRun, kMost).first_bytes, 40 * each);
  EXPECT_EQ(policy_of(far_cost(1024), kRun, kMost).first_bytes, kMost / 4 * 3);
}

TEST(ReadPolicyTest, reads_are_shorter_where_more_are_answered_at_once) {
  constexpr uint64_t kMost = 1024 * kMiB;
  EXPECT_EQ(policy_of(far_cost(64), 100'000, kMost).most_bytes, 16 * kMiB);
  EXPECT_EQ(policy_of(far_cost(1024), 100'000, kMost).most_bytes, 1'250'000u);
}

TEST(ReadPolicyTest, runs_may_take_more_of_the_budget_only_where_it_is_free) {
  EXPECT_EQ(most_ahead_bytes(kMiB, true, true), kMiB / 2);
  EXPECT_EQ(most_ahead_bytes(kMiB, true, false), most_free_ahead_bytes(kMiB, true));
  EXPECT_EQ(most_free_ahead_bytes(kMiB, true), kMiB / 4 * 3);
  EXPECT_EQ(most_free_ahead_bytes(kMiB, false), most_ahead_bytes(kMiB, false, false));
}

}  // namespace
}  // namespace headrace
