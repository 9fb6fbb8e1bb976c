// SPDX-License-Identifier: Apache-2.0
#include "plan/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "plan/test_support.h"

namespace headrace {
namespace {

// One fixed set of keys: a sound permutation passes every time, not 999 times in 1,000.
constexpr double kSigmas = 4;

std::vector<uint64_t> all_of(Permutation& p) {
  std::vector<uint64_t> out(p.size());
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = p.at(i);
  return out;
}

bool is_permutation_of(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  for (uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] != i) return false;
  }
  return true;
}

TEST(PermutationTest, TakesEveryValueOnce) {
  Permutation p;
  for (const uint64_t n :
       {0u, 1u, 2u, 3u, 100u, 65535u, 65536u, 65537u, 65538u, 66049u, 66050u, 100000u}) {
    p.reset(Key(n), n);
    EXPECT_TRUE(is_permutation_of(all_of(p))) << n;
  }
}

TEST(PermutationTest, TheOrderOfAskingDoesNotMatter) {
  Permutation forwards;
  Permutation backwards;
  forwards.reset(Key(1), 1000);
  backwards.reset(Key(1), 1000);
  for (uint64_t i = 1000; i-- > 0;) backwards.at(i);
  std::vector<uint16_t> at_once(1000);
  fill_permutation(Key(1), at_once);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(forwards.at(i), backwards.at(i));
    EXPECT_EQ(forwards.at(i), at_once[i]);
  }
}

TEST(PermutationTest, EveryOrderOfAFewIsEquallyLikely) {
  for (uint64_t n = 2; n <= 5; ++n) {
    std::map<std::vector<uint64_t>, uint64_t> seen;
    Permutation p;
    for (uint64_t epoch = 0; epoch < 240000; ++epoch) {
      p.reset(Key(7).with("few").with(epoch), n);
      ++seen[all_of(p)];
    }
    std::vector<uint64_t> counts;
    counts.reserve(seen.size());
    for (const auto& [order, count] : seen) counts.push_back(count);
    uint64_t factorial = 1;
    for (uint64_t i = 2; i <= n; ++i) factorial *= i;
    ASSERT_EQ(counts.size(), factorial);
    EXPECT_LT(std::abs(chi_square_sigmas(counts)), kSigmas) << n;
  }
}

// Where position i goes, and where its neighbour goes relative to it, over many keys.
void expect_uniform_over_keys(uint64_t n, uint64_t i, uint64_t keys) {
  constexpr uint64_t kBins = 64;
  std::vector<uint64_t> place(kBins);
  std::vector<uint64_t> step(kBins);
  std::vector<uint64_t> pair(kBins);
  Permutation p;
  for (uint64_t k = 0; k < keys; ++k) {
    p.reset(Key(11).with(n).with(k), n);
    const uint64_t a = p.at(i);
    const uint64_t b = p.at(i + 1);
    ++place[a * kBins / n];
    ++step[(b + n - a - 1) % n * kBins / (n - 1)];
    ++pair[a * 8 / n * 8 + b * 8 / n];
  }
  EXPECT_LT(std::abs(chi_square_sigmas(place)), kSigmas) << n << " at " << i;
  EXPECT_LT(std::abs(chi_square_sigmas(step)), kSigmas) << n << " at " << i;
  EXPECT_LT(std::abs(chi_square_sigmas(pair)), kSigmas) << n << " at " << i;
}

TEST(PermutationTest, PositionsAndNeighboursAreUniformOverKeys) {
  for (const uint64_t i : {0u, 500u, 1022u}) expect_uniform_over_keys(1024, i, 100000);
  for (const uint64_t n : {65537u, 65538u, 66049u, 66050u, 1000000u}) {
    for (const uint64_t i : {uint64_t{0}, n / 2, n - 2}) expect_uniform_over_keys(n, i, 100000);
  }
  expect_uniform_over_keys(uint64_t{1} << 55, 1, 100000);  // a · bins still fits 64 bits
}

// Within one permutation: neighbours, and those one row of the Feistel square apart.
void expect_uniform_within(uint64_t n, uint64_t apart, uint64_t looks) {
  constexpr uint64_t kBins = 256;
  std::vector<uint64_t> pair(kBins);
  Permutation p;
  p.reset(Key(13).with(n), n);
  for (uint64_t i = 0; i < looks; ++i) {
    const uint64_t a = p.at(i);
    const uint64_t b = p.at(i + apart);
    ++pair[a * 16 / n * 16 + b * 16 / n];
  }
  EXPECT_LT(chi_square_sigmas(pair), kSigmas) << n << " apart " << apart;
}

TEST(PermutationTest, PairsWithinOnePermutationAreUniform) {
  for (const uint64_t n : {65536u, 65537u, 66049u, 1000000u, 100000000u}) {
    for (const uint64_t apart : {1u, 2u, 256u, 257u, 1000u}) expect_uniform_within(n, apart, 60000);
  }
}

TEST(PermutationTest, NeighbouringKeysGiveUnrelatedOrders) {
  for (const uint64_t n : {uint64_t{1000}, uint64_t{65537}, uint64_t{1} << 40}) {
    uint64_t equal = 0;
    Permutation a;
    Permutation b;
    for (uint64_t epoch = 0; epoch < 1000; ++epoch) {
      a.reset(Key(1).with(epoch), n);
      b.reset(Key(1).with(epoch + 1), n);
      for (uint64_t i = 0; i < 100; ++i) equal += a.at(i) == b.at(i);
    }
    EXPECT_NEAR(static_cast<double>(equal), 1e5 / static_cast<double>(n), 50) << n;
  }
}

TEST(FeistelTest, InverseFindsThePosition) {
  for (const uint64_t n : {uint64_t{65537}, uint64_t{999983}, uint64_t{1} << 40,
                           (uint64_t{1} << 63) - 25, uint64_t{1} << 63}) {
    const Feistel f(Key(n), n);
    Rng rng{Key(3)};
    for (int k = 0; k < 1000; ++k) {
      const uint64_t i = rng.below(n);
      ASSERT_LT(f.at(i), n);
      ASSERT_EQ(f.inverse(f.at(i)), i) << n;
    }
  }
}

TEST(FeistelTest, IsABijectionDownToOne) {
  for (uint64_t n = 1; n < 300; ++n) {
    const Feistel f(Key(n), n);
    std::vector<uint64_t> values(n);
    for (uint64_t i = 0; i < n; ++i) values[i] = f.at(i);
    EXPECT_TRUE(is_permutation_of(values)) << n;
  }
}

}  // namespace
}  // namespace headrace
