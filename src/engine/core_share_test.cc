// SPDX-License-Identifier: Apache-2.0
#include "engine/core_share.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(CoreShareTest, threads_get_what_processes_leave) {
  EXPECT_EQ(threads_beside(8, 0.0, 16), 8);
  EXPECT_EQ(threads_beside(8, 3.2, 16), 5);
  EXPECT_EQ(threads_beside(8, 8.0, 16), 1) << "somebody must make values for the processes";
  EXPECT_EQ(threads_beside(2, 40.0, 3), 1);
  EXPECT_EQ(threads_beside(8, 0.0, 3), 3) << "never more than there are";
  EXPECT_EQ(threads_beside(1, 0.0, 5), 1);
  for (double busy = 0; busy < 8; busy += 0.25)
    EXPECT_GE(threads_beside(8, busy, 8), threads_beside(8, busy + 0.25, 8));
}

// So many processes busy all the time, measured every 10 ms.
void run_for(CoreShare& share, uint64_t& now, int ms, int busy) {
  for (int t = 0; t < ms; t += 10) {
    now += 10 * kMs;
    for (int k = 0; k < busy; ++k) {
      share.leave();
      share.come_back(10 * kMs, now);
    }
    if (busy == 0) {
      share.leave();
      share.come_back(0, now);
    }
  }
}

TEST(CoreShareTest, follows_what_is_measured_both_ways) {
  CoreShare share(8, 6, 14);
  uint64_t now = 1;
  EXPECT_EQ(share.may_run(), 14) << "before anything was measured";
  run_for(share, now, 1000, 6);
  EXPECT_EQ(share.may_run(), 2);
  run_for(share, now, 1000, 0);
  EXPECT_EQ(share.may_run(), 8);
  run_for(share, now, 1000, 3);
  EXPECT_EQ(share.may_run(), 5);
  EXPECT_EQ(share.away(), 0);
}

TEST(CoreShareTest, one_long_call_is_not_more_than_all_processes) {
  CoreShare share(4, 2, 6);
  share.leave();
  share.come_back(0, 1);
  share.leave();
  EXPECT_TRUE(share.come_back(60'000 * kMs, 100 * kMs));  // it began long before
  EXPECT_EQ(share.may_run(), 2);
}

TEST(CoreShareTest, without_processes_nothing_changes) {
  const CoreShare share(2, 0, 7);
  EXPECT_FALSE(share.is_shared());
  EXPECT_EQ(share.may_run(), 7);
}

}  // namespace
}  // namespace headrace
