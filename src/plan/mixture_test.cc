// SPDX-License-Identifier: Apache-2.0
#include "plan/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "plan/reference.h"

namespace headrace {
namespace {

constexpr Key kKey = Key(1).with("mixture");

std::vector<double> random_shares(Rng& rng, uint64_t sources) {
  std::vector<double> shares;
  for (uint64_t k = 0; k < sources; ++k) {
    shares.push_back(rng.below(6) == 0 ? 0 : std::pow(rng.uniform(), 3) + 1e-3);
  }
  shares[rng.below(sources)] = 1;
  return shares;
}

std::vector<uint64_t> random_weights(Rng& rng, uint64_t sources) {
  return integer_weights(random_shares(rng, sources)).value();
}

uint64_t block_of(const std::vector<uint64_t>& weights) {
  uint64_t least = kWeightOne;
  for (const uint64_t w : weights) least = w > 0 ? std::min(least, w) : least;
  return std::max<uint64_t>(64, (kWeightOne + least - 1) / least);
}

TEST(WeightsTest, SumExactlyAndKeepProportions) {
  Rng rng{Key(1)};
  for (int i = 0; i < 3000; ++i) {
    const std::vector<double> shares = random_shares(rng, 1 + rng.below(30));
    const auto weights = integer_weights(shares);
    ASSERT_TRUE(weights.ok()) << weights.status().text();
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    uint64_t sum = 0;
    for (size_t k = 0; k < shares.size(); ++k) {
      sum += weights.value()[k];
      ASSERT_NEAR(static_cast<double>(weights.value()[k]), shares[k] / total * 0x1p32, 1.0);
      ASSERT_EQ(weights.value()[k] == 0, shares[k] == 0);
    }
    ASSERT_EQ(sum, kWeightOne);
  }
  const std::vector<double> thirds{1, 1, 1};
  EXPECT_EQ(integer_weights(thirds).value(),
            (std::vector<uint64_t>{1431655766, 1431655765, 1431655765}));
}

TEST(WeightsTest, NonsenseIsRefused) {
  const auto message = [](std::vector<double> shares) {
    return std::string(integer_weights(shares).status().message());
  };
  EXPECT_EQ(message({0, 0}), "no source has a weight above 0");
  EXPECT_EQ(message({}), "no source has a weight above 0");
  EXPECT_EQ(message({1, -1}), "a weight must be a number from 0 on, not -1");
  EXPECT_EQ(message({1, std::nan("")}), "a weight must be a number from 0 on, not nan");
  EXPECT_EQ(
      message({1, 1e-9}),
      "source 1 has a share of 1e-09, below 2^-20 (one draw in a million): give it more, or none");
  EXPECT_FALSE(Mixture::make(kKey, {kWeightOne - 1}).ok());
  EXPECT_FALSE(Mixture::make(kKey, {kWeightOne, kWeightOne}).ok());
  EXPECT_FALSE(Mixture::make(kKey, {kWeightOne - 5, 5}).ok());
}

TEST(MixtureTest, QuotasAreExactAtTheBordersOfBlocks) {
  Rng rng{Key(2)};
  for (int i = 0; i < 200; ++i) {
    const auto weights = random_weights(rng, 1 + rng.below(9));
    const uint64_t m = block_of(weights);
    Mixture mixture = Mixture::make(kKey, weights).value();
    std::vector<uint64_t> before(weights.size());
    for (uint64_t b = 1; b < 100; ++b) {
      const auto counts = mixture.counts(b * m);
      uint64_t sum = 0;
      for (size_t k = 0; k < weights.size(); ++k) {
        ASSERT_GE(counts[k], before[k]);
        const double exact = static_cast<double>(weights[k]) * static_cast<double>(b * m) * 0x1p-32;
        ASSERT_LT(std::abs(static_cast<double>(counts[k]) - exact), 1);
        sum += counts[k] - before[k];
        before[k] = counts[k];
      }
      ASSERT_EQ(sum, m);
    }
  }
}

TEST(MixtureTest, StaysExactAfter10To18Draws) {
  Mixture mixture =
      Mixture::make(kKey, integer_weights(std::vector<double>{0.7, 0.2, 0.1}).value()).value();
  const uint64_t far = 1000000000000000000 / 64 * 64;
  const std::vector<uint64_t> weights(mixture.weights_at(0).begin(), mixture.weights_at(0).end());
  const auto counts = mixture.counts(far);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], far);
  for (size_t k = 0; k < 3; ++k) {
    const auto exact =
        static_cast<uint64_t>(static_cast<unsigned __int128>(weights[k]) * far >> 32);
    EXPECT_LE(std::abs(static_cast<int64_t>(counts[k] - exact)), 1);
  }
  const MixtureDraw draw = mixture.at(far);
  EXPECT_EQ(draw.position, mixture.counts(far)[draw.source]);
}

// A schedule of several changes at arbitrary draws.
std::vector<std::pair<uint64_t, std::vector<uint64_t>>> random_schedule(Rng& rng) {
  const uint64_t sources = 1 + rng.below(6);
  std::vector<std::pair<uint64_t, std::vector<uint64_t>>> schedule;
  uint64_t draw = 0;
  for (uint64_t i = 0; i < 1 + rng.below(5); ++i) {
    schedule.emplace_back(draw, random_weights(rng, sources));
    draw += 1 + rng.below(300);
  }
  return schedule;
}

TEST(MixtureTest, SchedulesLoseAndRepeatNothing) {
  Rng rng{Key(3)};
  for (int i = 0; i < 1000; ++i) {
    const auto schedule = random_schedule(rng);
    Mixture mixture = Mixture::make(kKey, schedule[0].second).value();
    for (size_t s = 1; s < schedule.size(); ++s) {
      ASSERT_TRUE(mixture.set_weights(schedule[s].second, schedule[s].first).ok());
    }
    const uint64_t draws = schedule.back().first + 500;
    const std::vector<uint32_t> expected = reference::mixed(kKey, schedule, draws);
    std::vector<uint64_t> next(mixture.sources());
    for (uint64_t d = 0; d < draws; ++d) {
      const MixtureDraw draw = mixture.at(d);
      ASSERT_EQ(draw.source, expected[d]) << d;
      ASSERT_EQ(draw.position, next[draw.source]++) << d;
    }
  }
}

TEST(MixtureTest, FoldingEqualsUnfolding) {
  Rng rng{Key(4)};
  for (int i = 0; i < 500; ++i) {
    const auto schedule = random_schedule(rng);
    Mixture whole = Mixture::make(kKey, schedule[0].second).value();
    for (size_t s = 1; s < schedule.size(); ++s) {
      ASSERT_TRUE(whole.set_weights(schedule[s].second, schedule[s].first).ok());
    }
    const uint64_t at = rng.below(schedule.back().first + 500);
    Mixture folded = Mixture::restore(kKey, whole.fold(at)).value();
    EXPECT_LE(folded.first_draw(), at);
    EXPECT_EQ(folded.fold(at), whole.fold(at));
    for (uint64_t d = at; d < at + 300; ++d) {
      const MixtureDraw a = whole.at(d);
      const MixtureDraw b = folded.at(d);
      ASSERT_EQ(a.source, b.source);
      ASSERT_EQ(a.position, b.position);
    }
  }
}

TEST(MixtureTest, AChangeOfAChangeReplacesIt) {
  const std::vector<uint64_t> half{kWeightOne / 2, kWeightOne / 2};
  Mixture mixture = Mixture::make(kKey, half).value();
  EXPECT_TRUE(mixture.set_weights({kWeightOne, 0}, 100).ok());
  EXPECT_TRUE(mixture.set_weights({0, kWeightOne}, 100).ok());
  EXPECT_EQ(mixture.at(150).source, 1u);
  EXPECT_EQ(mixture.fold(0).schedule.size(), 2u);
  EXPECT_EQ(mixture.set_weights(half, 99).code(), Code::kInvalidArgument);
  EXPECT_EQ(mixture.set_weights({kWeightOne}, 200).message(), "1 weights for 2 sources");
}

TEST(MixtureTest, ASourceOfTheLeastWeightIsDrawn) {
  Mixture mixture = Mixture::make(kKey, {kWeightOne - kMinWeight, kMinWeight}).value();
  EXPECT_EQ(mixture.counts(1 << 20)[1], 1u);
  EXPECT_EQ(mixture.counts(5 << 20)[1], 5u);
}

TEST(MixtureTest, ADamagedStateIsRefused) {
  EXPECT_FALSE(Mixture::restore(kKey, {}).ok());
  EXPECT_FALSE(Mixture::restore(kKey, {{0, 0}, {{0, {kWeightOne}}}}).ok());
  EXPECT_FALSE(Mixture::restore(kKey, {{~uint64_t{0}}, {{0, {kWeightOne}}}}).ok());
  EXPECT_FALSE(Mixture::restore(kKey, {{0}, {{~uint64_t{0}, {kWeightOne}}}}).ok());
  EXPECT_FALSE(Mixture::restore(kKey, {{0}, {{9, {kWeightOne}}, {5, {kWeightOne}}}}).ok());
  EXPECT_FALSE(Mixture::restore(kKey, {{0}, {{9, {kWeightOne}}, {15, {}}}}).ok());
}

}  // namespace
}  // namespace headrace
