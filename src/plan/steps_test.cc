// SPDX-License-Identifier: Apache-2.0
#include "plan/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/rng.h"
#include "plan/reference.h"

namespace headrace {
namespace {

StepCut cut_of(uint64_t batch, Tail tail, uint32_t rank = 0, uint32_t world = 1) {
  return {.batch = batch, .rank = rank, .world = world, .tail = tail};
}

TEST(StepsTest, CountsFollowTheTail) {
  EXPECT_EQ(steps_from(0, 10, cut_of(4, Tail::kDrop)), 2u);
  EXPECT_EQ(steps_from(0, 10, cut_of(4, Tail::kKeep)), 3u);
  EXPECT_EQ(steps_from(0, 10, cut_of(4, Tail::kPad)), 3u);
  EXPECT_EQ(steps_from(8, 10, cut_of(4, Tail::kDrop)), 0u);
  EXPECT_EQ(steps_from(10, 10, cut_of(4, Tail::kKeep)), 0u);
  EXPECT_EQ(steps_from(99, 10, cut_of(4, Tail::kPad)), 0u);
  EXPECT_EQ(steps_from(0, 0, cut_of(4, Tail::kKeep)), 0u);
}

TEST(StepsTest, AnImpossibleCutIsRefusedWithItsNumbers) {
  EXPECT_TRUE(validate(cut_of(8, Tail::kDrop, 3, 4)).ok());
  EXPECT_EQ(validate(cut_of(9, Tail::kDrop, 0, 4)).message(),
            "a global batch of 9 does not divide by 4 ranks");
  EXPECT_EQ(validate(cut_of(8, Tail::kDrop, 4, 4)).message(),
            "rank 4 of 4 ranks: ranks count from 0");
  EXPECT_FALSE(validate(cut_of(0, Tail::kDrop)).ok());
  EXPECT_FALSE(validate(cut_of(8, Tail::kDrop, 0, 0)).ok());
}

TEST(StepsTest, PadsFillEveryRankAndAreShared) {
  for (uint64_t n = 1; n <= 12; ++n) {
    uint64_t next = 0;
    uint64_t next_pad = 0;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const StepPart part = part_of(n, cut_of(12, Tail::kPad, rank, 4));
      EXPECT_EQ(part.first, next);
      EXPECT_EQ(part.pad_first, next_pad);
      EXPECT_EQ(part.last - part.first + part.pad_last - part.pad_first, 3u);
      next = part.last;
      next_pad = part.pad_last;
    }
    EXPECT_EQ(next, n);
    EXPECT_EQ(next_pad, 12 - n);
  }
}

TEST(StepsTest, StretchesCoverAnEndlessSequence) {
  Rng rng{Key(1)};
  for (int i = 0; i < 2000; ++i) {
    const uint64_t length = 1 + rng.below(7);
    const uint64_t from = rng.below(30);
    const uint64_t to = from + rng.below(30);
    std::vector<StepRange> ranges;
    append_ranges(2, from, to, length, ranges);
    ASSERT_LE(ranges.size(), 3u);
    uint64_t p = from;
    for (const StepRange& s : ranges) {
      for (uint64_t e = s.epoch; e < s.epoch + s.epochs; ++e) {
        for (uint64_t x = s.begin; x < s.end; ++x) ASSERT_EQ(e * length + x, p++);
      }
    }
    ASSERT_EQ(p, to);
  }
}

using Sortable = std::tuple<uint64_t, uint32_t, uint64_t, uint64_t>;

std::vector<EpochPlace> sorted(const std::vector<StepRange>& ranges, uint64_t lanes) {
  std::vector<Sortable> all;
  for (const StepRange& s : ranges) {
    for (uint64_t e = s.epoch; e < s.epoch + s.epochs; ++e) {
      for (uint64_t x = s.begin; x < s.end; ++x) {
        all.emplace_back(reference::reversed(x % lanes, lanes), s.source, e, x);
      }
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<EpochPlace> out;
  for (const auto& [lane, source, epoch, x] : all) out.push_back({source, epoch, x});
  return out;
}

TEST(StepsTest, WalkingTheLanesEqualsSorting) {
  Rng rng{Key(2)};
  LaneWalk walk;
  for (int i = 0; i < 3000; ++i) {
    std::vector<StepRange> ranges;
    for (uint32_t source = 0; source < 1 + rng.below(4); ++source) {
      const uint64_t from = rng.below(200);
      append_ranges(source, from, from + rng.below(60), 1 + rng.below(90), ranges);
    }
    const auto lanes = static_cast<uint32_t>(1 << rng.below(8));
    const std::vector<EpochPlace> all = sorted(ranges, lanes);
    const uint64_t first = rng.below(all.size() + 1);
    const uint64_t last = first + rng.below(all.size() - first + 1);
    std::vector<EpochPlace> part;
    walk.take(ranges, lanes, first, last, part);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<int64_t>(first),
                           all.begin() + static_cast<int64_t>(last)));
  }
}

TEST(StepsTest, PositionsNear2To63DoNotOverflow) {
  LaneWalk walk;
  std::vector<EpochPlace> part;
  const uint64_t end = uint64_t{1} << 63;
  const std::vector<StepRange> last{{.begin = end - 10, .end = end}};
  walk.take(last, 65536, 0, 10, part);
  ASSERT_EQ(part.size(), 10u);
  for (const EpochPlace& p : part) EXPECT_GE(p.position, end - 10);
}

}  // namespace
}  // namespace headrace
