// SPDX-License-Identifier: Apache-2.0
#include "plan/block_tree.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"
#include "plan/block_order.h"

namespace headrace {
namespace {

std::vector<uint32_t> random_sizes(Rng& rng, uint64_t blocks) {
  std::vector<uint32_t> sizes(blocks);
  for (uint32_t& size : sizes) size = static_cast<uint32_t>(rng.below(5));
  return sizes;
}

TEST(BlockTreeTest, LiesInTreeOrder) {
  const std::vector<uint32_t> sizes{10, 11, 12, 13, 14};
  const BlockTree tree = BlockTree::build(sizes, 2).value();
  const BlockTables& t = tree.tables();
  EXPECT_EQ(std::vector(t.last.begin(), t.last.end()), (std::vector<uint32_t>{10, 14, 12, 11, 13}));
  EXPECT_EQ(std::vector(t.inner.begin(), t.inner.end()),
            (std::vector<uint64_t>{36, 24, 24, 12, 11, 13}));
  EXPECT_EQ(tree.first_sample(3), 33u);
}

TEST(BlockTreeTest, EverySumIsThatOfItsBlocks) {
  Rng rng{Key(1)};
  for (uint64_t blocks = 0; blocks < 200; ++blocks) {
    for (const uint32_t fan_out : {2u, 3u, 5u, 7u, 827u, 1024u}) {
      const std::vector<uint32_t> sizes = random_sizes(rng, blocks);
      const BlockTree tree = BlockTree::build(sizes, fan_out).value();
      ASSERT_EQ(tree.samples(), std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
      const Status s = tree.verify();
      ASSERT_TRUE(s.ok()) << s.text() << " blocks " << blocks << " fan-out " << fan_out;
    }
  }
}

TEST(BlockTreeTest, FindsTheBlockOfASample) {
  const std::vector<uint32_t> sizes{0, 3, 0, 0, 2, 1, 0};
  const BlockTree tree = BlockTree::build(sizes).value();
  const std::vector<uint64_t> expected{1, 1, 1, 4, 4, 5};
  for (uint64_t s = 0; s < expected.size(); ++s) EXPECT_EQ(tree.block_of(s), expected[s]);
  EXPECT_EQ(tree.filled_blocks(), 3u);
}

TEST(BlockTreeTest, AViewReadsTablesItDoesNotOwn) {
  Rng rng{Key(2)};
  const BlockTree built = BlockTree::build(random_sizes(rng, 100), 3).value();
  const BlockTree view = BlockTree::view(built.tables(), nullptr, 3).value();
  EXPECT_TRUE(view.verify().ok());
  EXPECT_EQ(view.tables().last.data(), built.tables().last.data());
  const BlockTree moved = BlockTree::build(random_sizes(rng, 100), 3).value();
  EXPECT_TRUE(moved.verify().ok());
}

TEST(BlockTreeTest, AViewOfTheWrongShapeIsRefused) {
  Rng rng{Key(3)};
  const BlockTree built = BlockTree::build(random_sizes(rng, 100), 3).value();
  EXPECT_EQ(BlockTree::view(built.tables(), nullptr, 4).status().code(), Code::kCorrupt);
  BlockTables tables = built.tables();
  ++tables.samples;
  EXPECT_EQ(BlockTree::view(tables, nullptr, 3).status().code(), Code::kCorrupt);
  EXPECT_EQ(BlockTree::build({}, 1).status().code(), Code::kInvalidArgument);
}

// Every table entry wrong in turn: found by verify(), and look-ups stay inside the tables (ASan).
TEST(BlockTreeTest, WrongSumsAreNoticedAndHarmless) {
  Rng rng{Key(4)};
  const std::vector<uint32_t> sizes = random_sizes(rng, 60);
  const BlockTree built = BlockTree::build(sizes, 3).value();
  const BlockTables& good = built.tables();
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{77}, ~uint64_t{0}}) {
    for (size_t i = 0; i < good.inner.size() + good.last.size() + good.first_sample.size(); ++i) {
      std::vector<uint64_t> inner(good.inner.begin(), good.inner.end());
      std::vector<uint32_t> last(good.last.begin(), good.last.end());
      std::vector<uint64_t> first(good.first_sample.begin(), good.first_sample.end());
      bool same = false;
      if (i < inner.size()) {
        same = std::exchange(inner[i], wrong) == wrong;
      } else if (i < inner.size() + last.size()) {
        const auto w = static_cast<uint32_t>(wrong);
        same = std::exchange(last[i - inner.size()], w) == w;
      } else {
        same = std::exchange(first[i - inner.size() - last.size()], wrong) == wrong;
      }
      if (same) continue;
      const auto tree =
          BlockTree::view({inner, last, first, good.samples, good.filled}, nullptr, 3);
      if (!tree.ok()) continue;
      EXPECT_EQ(tree.value().verify().code(), Code::kCorrupt) << i;
      BlockOrder order(tree.value(), Key(5));
      std::vector<BlockRun> runs;
      for (uint64_t q = 0; q < good.samples; q += 7) order.runs(q, good.samples - q, runs);
    }
  }
}

TEST(BlockOrderTest, AFewKeptNodesGiveTheSameOrderAsAll) {
  Rng rng{Key(6)};
  const BlockTree tree = BlockTree::build(random_sizes(rng, 500), 3).value();
  BlockOrder all(tree, Key(7));
  BlockOrder few(tree, Key(7), 1);
  std::vector<BlockRun> a;
  std::vector<BlockRun> b;
  for (uint64_t q = 0; q < tree.samples(); ++q) {
    all.runs(q, 1, a);
    few.runs(q, 1, b);
    ASSERT_EQ(a[0].sample, b[0].sample);
  }
  EXPECT_LT(few.memory_bytes(), 1000u);
  EXPECT_GT(all.memory_bytes(), 10000u);
}

}  // namespace
}  // namespace headrace
