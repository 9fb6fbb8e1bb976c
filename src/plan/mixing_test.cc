// SPDX-License-Identifier: Apache-2.0
//
// How well pools mix, and how well ranks stay apart: the two numbers of the design.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "plan/order.h"
#include "plan/shape.h"
#include "plan/steps.h"
#include "plan/test_support.h"

namespace headrace {
namespace {

constexpr uint64_t kMeanBlock = 50;

std::vector<uint32_t> even(uint64_t blocks) {
  return std::vector<uint32_t>(blocks, kMeanBlock);
}

std::vector<uint32_t> uneven(uint64_t blocks) {
  Rng rng{Key(1)};
  std::vector<uint32_t> sizes(blocks);
  for (uint32_t& s : sizes) s = static_cast<uint32_t>(1 + rng.below(2 * kMeanBlock - 1));
  return sizes;
}

// Far more uneven than blocks cut at 4 MiB are: a tenth is above twice the mean.
std::vector<uint32_t> exponential(uint64_t blocks) {
  Rng rng{Key(2)};
  std::vector<uint32_t> sizes(blocks);
  for (uint32_t& s : sizes) {
    s = static_cast<uint32_t>(-static_cast<double>(kMeanBlock) * std::log(1 - rng.uniform()));
  }
  return sizes;
}

// The variance of a batch's class counts over that of uniform sampling, B·p·(1-p).
// The samples are sorted by class within each of `shards` equal parts.
double variance_ratio(const BlockTree& tree, const OrderShape& shape, uint64_t batch,
                      uint64_t classes, uint64_t shards = 1) {
  const double p = 1 / static_cast<double>(classes);
  const double mean = static_cast<double>(batch) * p;
  double squares = 0;
  uint64_t terms = 0;
  std::vector<uint64_t> counts(classes);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    Order order(tree, {.seed = 1, .epoch = epoch}, shape);
    for (uint64_t g = 0; g + batch <= order.samples(); g += batch, terms += classes) {
      counts.assign(classes, 0);
      for (uint64_t i = g; i < g + batch; ++i)
        ++counts[order.at(i) * shards % order.samples() * classes / order.samples()];
      for (const uint64_t c : counts) squares += std::pow(static_cast<double>(c) - mean, 2);
    }
  }
  return squares / static_cast<double>(terms) / (mean * (1 - p));
}

// Draws from K blocks at random would have 1 + B/K.  The lanes do better: a batch of
// up to L takes one sample of a lane at most, and lanes hold unrelated blocks.
void expect_mixed(const std::vector<uint32_t>& sizes, uint32_t lanes, uint64_t classes) {
  const auto tree = make_tree(sizes);
  OrderShape shape = choose_shape({tree->samples(), tree->filled_blocks(), 0}, Shuffle::kPool);
  shape.lanes = lanes;
  for (const uint64_t batch : {lanes / 4u, lanes, 2 * lanes, 4 * lanes, 16 * lanes}) {
    const double window = 2.0 * lanes;  // K: a pool has two blocks
    const double ratio = variance_ratio(*tree, shape, batch, classes);
    EXPECT_LE(ratio, 1.05 * (1 + static_cast<double>(batch) / window))
        << "L " << lanes << " B " << batch << " classes " << classes;
    EXPECT_TRUE(batch > lanes || ratio <= 1.03) << ratio << " L " << lanes << " B " << batch;
  }
}

TEST(MixingTest, ClassCountsVaryNoMoreThanTheDesignAllows) {
  for (const uint64_t classes : {10u, 100u}) {
    for (const auto& [blocks, lanes] : {std::pair{1000u, 16u}, {8000u, 64u}, {8000u, 256u}}) {
      expect_mixed(even(blocks), lanes, classes);
      expect_mixed(uneven(blocks), lanes, classes);
      expect_mixed(exponential(blocks), lanes, classes);
    }
  }
}

// Shards that are sorted inside repeat the classes every so many blocks.  A fan-out that
// shares a factor with that period would make all blocks of a node alike.
TEST(MixingTest, ContentThatRepeatsMixesAsWell) {
  constexpr uint64_t kBlocks = 20480;
  constexpr uint32_t kLanes = 64;
  const auto tree = make_tree(even(kBlocks));
  OrderShape shape = choose_shape({tree->samples(), kBlocks, 0}, Shuffle::kPool);
  shape.lanes = kLanes;
  const uint64_t batch = uint64_t{4} * kLanes;
  for (const uint64_t period : {16u, 32u, 64u, 100u, 250u, 256u, 512u, 1000u, 1024u, 4096u}) {
    const double ratio = variance_ratio(*tree, shape, batch, 10, kBlocks / period);
    EXPECT_LE(ratio, 2.4) << "period " << period;
  }
}

// How many ranks read from each pool, on average: 1 is each block fetched once, by one rank.
double ranks_per_pool(uint32_t lanes, uint64_t batch, uint32_t world) {
  constexpr uint64_t kSamples = 200000;
  constexpr uint64_t kPool = 64;
  std::map<std::pair<uint64_t, uint64_t>, std::set<uint32_t>> ranks;
  LaneWalk walk;
  std::vector<EpochPlace> places;
  for (uint64_t g = 0; g + batch <= kSamples; g += batch) {
    const std::vector<StepRange> step{{.begin = g, .end = g + batch}};
    for (uint32_t rank = 0; rank < world; ++rank) {
      const StepPart part = part_of(batch, {.batch = batch, .rank = rank, .world = world});
      places.clear();
      walk.take(step, lanes, part.first, part.last, places);
      for (const EpochPlace& p : places) {
        const uint64_t residue = p.position % lanes;
        ranks[{residue, (p.position / lanes + kPool * residue / lanes) / kPool}].insert(rank);
      }
    }
  }
  uint64_t sum = 0;
  for (const auto& [pool, who] : ranks) sum += who.size();
  return static_cast<double>(sum) / static_cast<double>(ranks.size());
}

constexpr double kOne = 1.035;  // 1.03 to two digits

TEST(MixingTest, APoolBelongsToOneRankWhereThereAreLanesEnough) {
  EXPECT_LE(ranks_per_pool(1024, 1536, 8), kOne);
  EXPECT_LE(ranks_per_pool(1024, 768, 8), kOne);
  EXPECT_LE(ranks_per_pool(1024, 96, 6), kOne);
  EXPECT_LE(ranks_per_pool(256, 2048, 8), kOne);
  EXPECT_LE(ranks_per_pool(256, 2048, 12), kOne);
  EXPECT_LE(ranks_per_pool(1024, 4096, 3), kOne);
  EXPECT_LE(ranks_per_pool(1024, 1000, 7), kOne);
  EXPECT_LE(ranks_per_pool(64, 256, 128), 2.1);  // R = 2 L: each pool has its two ranks
}

}  // namespace
}  // namespace headrace
