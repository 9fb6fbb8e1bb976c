// SPDX-License-Identifier: Apache-2.0
#include "plan/sample_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"

namespace headrace {
namespace {

std::vector<uint32_t> random_lengths(uint64_t seed, size_t count, uint64_t most) {
  Rng rng(Key(seed).with("lengths"));
  std::vector<uint32_t> out(count);
  for (uint32_t& n : out) n = static_cast<uint32_t>(rng.below(most + 1));
  return out;
}

using Made = Result<std::shared_ptr<const Grouping>>;

Made packed(std::vector<uint32_t> lengths, uint64_t capacity, uint64_t window) {
  return Grouping::make(std::move(lengths), {.capacity = capacity, .window = window});
}

Made cut(std::vector<uint32_t> lengths, const BatchBudget& budget, uint64_t window) {
  return Grouping::make(std::move(lengths), {.budget = budget, .window = window});
}

// Every sample that has a token once, each in a group of its window.
void check_whole(const SampleGroups& groups, const std::vector<uint32_t>& lengths,
                 uint64_t window) {
  std::vector<int> seen(lengths.size());
  uint64_t group = 0;
  for (size_t block = 0; block < groups.blocks().size(); ++block)
    for (uint32_t i = 0; i < groups.blocks()[block]; ++i, ++group) {
      ASSERT_FALSE(groups.members(group).empty());
      for (const uint32_t sample : groups.members(group)) {
        ++seen[sample];
        ASSERT_EQ(sample / window, block);
      }
    }
  ASSERT_EQ(group, groups.size());
  for (size_t i = 0; i < lengths.size(); ++i) ASSERT_EQ(seen[i], lengths[i] > 0 ? 1 : 0);
}

TEST(SampleGroups, packing_fills_no_row_beyond_its_length_and_leaves_no_two_that_fit_into_one) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng{Key(seed)};
    const uint64_t capacity = 1 + rng.below(100), window = 1 + rng.below(80);
    const auto lengths = random_lengths(seed, rng.below(300), capacity);
    const auto made = packed(lengths, capacity, window);
    ASSERT_TRUE(made.ok());
    const std::shared_ptr<const SampleGroups> groups = made.value()->as_they_lie();
    check_whole(*groups, lengths, window);
    uint64_t group = 0;
    for (const uint32_t count : groups->blocks()) {
      std::vector<uint64_t> sums;
      for (uint32_t i = 0; i < count; ++i, ++group) {
        const auto members = groups->members(group);
        EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
        sums.push_back(std::accumulate(members.begin(), members.end(), uint64_t{0},
                                       [&](uint64_t a, uint32_t s) { return a + lengths[s]; }));
        EXPECT_LE(sums.back(), capacity);
      }
      std::sort(sums.begin(), sums.end());
      if (sums.size() > 1) {
        EXPECT_GT(sums[0] + sums[1], capacity);
      }
    }
  }
}

TEST(SampleGroups, batches_stay_within_their_budget_by_either_cost) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng{Key(seed)};
    const BatchBudget budget{.most = 20 + rng.below(200),
                             .cost = seed % 2 == 0 ? BatchCost::kSum : BatchCost::kPadded,
                             .by_length = seed % 3 != 0,
                             .most_samples = seed % 5 == 0 ? 3U : 0U};
    const auto lengths = random_lengths(seed, rng.below(300), 20);
    const uint64_t window = 1 + rng.below(80);
    const auto made = cut(lengths, budget, window);
    ASSERT_TRUE(made.ok());
    const std::shared_ptr<const SampleGroups> groups = made.value()->as_they_lie();
    check_whole(*groups, lengths, window);
    for (uint64_t g = 0; g < groups->size(); ++g) {
      uint64_t sum = 0, longest = 0;
      const auto members = groups->members(g);
      for (const uint32_t s : members) {
        sum += lengths[s];
        longest = std::max<uint64_t>(longest, lengths[s]);
      }
      EXPECT_LE(budget.cost == BatchCost::kSum ? sum : longest * members.size(), budget.most);
      if (budget.most_samples > 0) {
        EXPECT_LE(members.size(), budget.most_samples);
      }
    }
  }
}

TEST(SampleGroups, a_bucket_holds_samples_of_neighbouring_lengths) {
  const auto lengths = random_lengths(1, 4096, 1000);
  const auto size = [](const Made& made) { return made.value()->as_they_lie()->size(); };
  const auto sorted = cut(lengths, {.most = 16000}, 4096);
  const auto mixed = cut(lengths, {.most = 16000, .by_length = false}, 4096);
  EXPECT_LT(size(sorted) * 3, size(mixed) * 2);  // far less padding
}

TEST(SampleGroups, a_sample_that_does_not_fit_is_named) {
  const std::vector<uint32_t> lengths{3, 9, 4};
  const Status of_rows = packed(lengths, 8, 10).status();
  EXPECT_EQ(of_rows.code(), Code::kInvalidArgument);
  EXPECT_NE(of_rows.text().find("sample 1 has 9 tokens"), std::string::npos);
  const Status of_batches = cut(lengths, {.most = 8}, 10).status();
  EXPECT_NE(of_batches.text().find("max_tokens"), std::string::npos);
}

TEST(SampleGroups, the_fingerprint_is_of_lengths_and_rules) {
  const std::vector<uint32_t> a{3, 5, 4}, b{3, 5, 5};
  const auto print = [](const auto& made) { return made.value()->fingerprint(); };
  EXPECT_EQ(print(packed(a, 8, 10)), print(packed(a, 8, 10)));
  EXPECT_NE(print(packed(a, 8, 10)), print(packed(b, 8, 10)));
  EXPECT_NE(print(packed(a, 8, 10)), print(packed(a, 9, 10)));
  EXPECT_NE(print(packed(a, 8, 10)), print(packed(a, 8, 2)));
  EXPECT_NE(print(cut(a, {.most = 8}, 10)),
            print(cut(a, {.most = 8, .cost = BatchCost::kSum}, 10)));
}

}  // namespace
}  // namespace headrace
