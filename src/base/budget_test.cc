// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/rng.h"

namespace headrace {
namespace {

TEST(BudgetTest, AGrantGivesBackWhatItTook) {
  Budget budget(100);
  {
    const Grant a = budget.take(60);
    EXPECT_FALSE(budget.try_take(41).has_value());
    const std::optional<Grant> b = budget.try_take(40);
    ASSERT_TRUE(b.has_value());
    EXPECT_EQ(b->bytes(), 40u);
    EXPECT_EQ(budget.used(), 100u);
    EXPECT_FALSE(budget.try_take(1).has_value());
    const Grant beyond = budget.take(50);
    EXPECT_EQ(budget.used(), 150u);
    EXPECT_FALSE(budget.try_take(0).has_value()) << "beyond the limit there is room for nothing";
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 150u);
}

TEST(BudgetTest, GrantsMoveGrowShrinkSplitAndMerge) {
  Budget budget(1000);
  Grant a = budget.take(100);
  a.grow(50);
  EXPECT_EQ(budget.used(), 150u);
  a.shrink(30);
  a.resize(400);
  EXPECT_EQ(a.bytes(), 400u);
  EXPECT_FALSE(a.try_grow(601));
  EXPECT_TRUE(a.try_grow(600));
  a.resize(400);
  Grant b = a.split(150);
  EXPECT_EQ(a.bytes(), 250u);
  EXPECT_EQ(b.bytes(), 150u);
  EXPECT_EQ(budget.used(), 400u) << "a split takes and gives nothing";
  EXPECT_EQ(a.split(9999).bytes(), 250u) << "at most all; it was let go of at once";
  EXPECT_EQ(budget.used(), 150u);
  Grant c = std::move(b);
  EXPECT_EQ(b.bytes(), 0u);  // NOLINT: the promise of moved-from grants
  a.grow(10);
  a.merge(std::move(c));
  EXPECT_EQ(a.bytes(), 160u);
  EXPECT_EQ(budget.used(), 160u);
  a = budget.take(5);
  EXPECT_EQ(budget.used(), 5u) << "what is assigned over is given back";
  a.reset();
  a.reset();
  EXPECT_EQ(budget.used(), 0u);
  Grant none;
  none.merge(budget.take(7));
  EXPECT_EQ(none.bytes(), 7u);
}

TEST(BudgetTest, LimitsMayChangeWhileGrantsAreOut) {
  Budget budget(100);
  int calls = 0;
  budget.on_release([&] { ++calls; });
  Grant a = budget.take(80);
  budget.set_limit(50);
  EXPECT_EQ(calls, 0) << "a lower limit frees nothing";
  EXPECT_FALSE(budget.try_take(1).has_value());
  budget.set_limit(81);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(budget.try_take(1).has_value());
  EXPECT_EQ(budget.limit(), 81u);
}

TEST(BudgetTest, WhoeverWaitsHearsOfEveryByteThatComesBack) {
  Budget budget(100);
  std::vector<uint64_t> used;
  budget.on_release([&] {
    used.push_back(budget.used());
    // No lock is held: it may take, and what it gives back calls again.
    if (used.size() == 1) {
      EXPECT_TRUE(budget.try_take(30).has_value());
    }
  });
  Grant a = budget.take(90);
  a.shrink(40);
  EXPECT_EQ(used, (std::vector<uint64_t>{50, 50}));
  a.shrink(0);
  EXPECT_EQ(used.size(), 2u) << "nothing came back";
}

TEST(BudgetTest, ManyThreadsLeaveNothingBehind) {
  constexpr uint64_t kLimit = 1000;
  Budget budget(kLimit);
  std::atomic<uint64_t> calls{0};
  budget.on_release([&] { calls.fetch_add(1, std::memory_order_relaxed); });
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Rng rng{Key(t)};
      std::vector<Grant> held;
      for (int i = 0; i < 5000; ++i) {
        if (std::optional<Grant> grant = budget.try_take(rng.below(300)))
          held.push_back(std::move(*grant));
        if (held.empty()) continue;
        Grant& any = held[rng.below(held.size())];
        switch (rng.below(5)) {
          case 0:
            any.shrink(rng.below(200));
            break;
          case 1:
            any.try_grow(rng.below(200));
            break;
          case 2:
            held.push_back(any.split(rng.below(100)));
            break;
          case 3:
            held.erase(held.begin());
            break;
          default:
            if (held.size() > 8) held.clear();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_LE(budget.peak(), kLimit) << "nobody took more than there is";
  EXPECT_GT(budget.peak(), kLimit / 2);
  EXPECT_GT(calls.load(), 0u);
}

}  // namespace
}  // namespace headrace
