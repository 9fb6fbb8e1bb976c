// SPDX-License-Identifier: Apache-2.0
#include "index/view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "index/expression.h"
#include "index/split.h"
#include "index/view_blocks.h"

namespace headrace {
namespace {

// Ten blocks of 100 samples, one of them empty.
Blocks ten_blocks() {
  Blocks blocks{std::vector<uint32_t>(10, 100), 1000};
  blocks.samples.insert(blocks.samples.begin() + 4, 0);
  return blocks;
}

std::vector<uint64_t> every(uint64_t step, uint64_t begin = 0, uint64_t end = 1000) {
  std::vector<uint64_t> out;
  for (uint64_t s = begin; s < end; s += step) out.push_back(s);
  return out;
}

std::vector<uint32_t> cut(const std::vector<uint64_t>& samples) {
  return cut_view(ten_blocks(), 1000, samples).blocks.samples;
}

TEST(ViewBlocks, follow_the_borders_of_the_base) {
  EXPECT_EQ(cut(every(1)), std::vector<uint32_t>(10, 100));
  EXPECT_EQ(cut(every(1, 50, 250)), (std::vector<uint32_t>{50, 100, 50}));
  EXPECT_EQ(cut({}), std::vector<uint32_t>());
}

TEST(ViewBlocks, join_what_is_left_of_neighbours_to_a_block_at_most) {
  EXPECT_EQ(cut(every(3)).size(), 4u);  // 34, 33 and 33 of three neighbours each
  EXPECT_EQ(cut(every(50)), std::vector<uint32_t>{20});
}

TEST(ViewBlocks, no_block_of_the_base_is_in_two_of_an_ascending_view) {
  for (const uint64_t step : {1u, 2u, 3u, 7u, 11u, 40u}) {
    const std::vector<uint64_t> samples = every(step, step / 2);
    uint64_t at = 0;
    uint64_t last_block = ~uint64_t{0};
    for (const uint32_t n : cut(samples)) {
      EXPECT_NE(samples[at] / 100, last_block) << step;
      at += n;
      last_block = samples[at - 1] / 100;
    }
    EXPECT_EQ(at, samples.size());
  }
}

TEST(ViewBlocks, each_round_of_repeats_is_cut_by_itself) {
  std::vector<uint64_t> twice = every(1);
  for (const uint64_t s : every(1, 0, 150)) twice.push_back(s);
  std::vector<uint32_t> wanted(10, 100);
  wanted.insert(wanted.end(), {100, 50});
  EXPECT_EQ(cut(twice), wanted);
}

TEST(ViewBlocks, neighbours_that_repeat_do_not_make_a_giant) {
  std::vector<uint64_t> samples;
  for (uint64_t s = 0; s < 100; ++s) samples.insert(samples.end(), 10, s);
  EXPECT_EQ(cut(samples), std::vector<uint32_t>(10, 100));
}

TEST(ViewBlocks, numbers_in_no_order_are_cut_evenly) {
  std::vector<uint64_t> samples(1000);
  for (uint64_t i = 0; i < 1000; ++i) samples[i] = i * 377 % 1000;
  const ViewBlocks blocks = cut_view(ten_blocks(), 1000, samples);
  EXPECT_EQ(blocks.blocks.samples, std::vector<uint32_t>(10, 100));
  EXPECT_TRUE(blocks.base_begin.empty());
}

TEST(ViewBlocks, a_block_of_which_little_is_wanted_is_not_read_whole) {
  std::vector<uint64_t> samples = every(1, 0, 100);
  samples.push_back(150);
  const ViewBlocks blocks = cut_view(ten_blocks(), 1000, samples);
  EXPECT_TRUE(blocks.is_dense[0]);
  EXPECT_FALSE(blocks.is_dense[1]);
}

TEST(KeySplit, is_frozen) {
  const KeySplit split(std::vector<double>{0.5, 0.25}, 0);
  std::string parts;
  for (int i = 0; i < 32; ++i)
    parts += static_cast<char>('0' + split.part_of("key" + std::to_string(i)));
  EXPECT_EQ(parts, "21000200101222202221211002112000");
}

TEST(KeySplit, shares_are_kept) {
  const KeySplit split(std::vector<double>{0.7, 0.2, 0.1}, 3);
  std::vector<int> counts(4);
  for (int i = 0; i < 20000; ++i) ++counts[split.part_of("k" + std::to_string(i))];
  EXPECT_NEAR(counts[0], 14000, 300);
  EXPECT_NEAR(counts[1], 4000, 250);
  EXPECT_NEAR(counts[2], 2000, 200);
  EXPECT_EQ(counts[3], 0);  // 0.7 + 0.2 + 0.1 is not 1 in doubles, and is meant to be
}

TEST(Expression, any_cut_or_changed_text_is_parsed_or_refused) {
  const std::string text = "not (a < 10 or b.c in [1, -2.5, 3e4]) and 'x' == `d e` or 1 <= f <= 2";
  ASSERT_TRUE(Expression::parse(text).ok());
  for (size_t n = 0; n <= text.size(); ++n) {
    (void)Expression::parse(text.substr(0, n)).ok();
    for (const char c : {'(', '\'', '[', '\0', '\xff', '9', ' ', '=', '<'}) {
      std::string changed = text;
      if (n < text.size()) changed[n] = c;
      (void)Expression::parse(changed).ok();
    }
  }
}

}  // namespace
}  // namespace headrace
