// SPDX-License-Identifier: Apache-2.0
#include "index/document_pools.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace {
namespace {

std::shared_ptr<const DocumentBegins> begins_of(const std::vector<uint64_t>& lengths,
                                                uint64_t& tokens) {
  auto out = std::make_shared<DocumentBegins>();
  tokens = 0;
  for (const uint64_t n : lengths) {
    out->push_back(tokens);
    tokens += n;
  }
  return out;
}

// The numbers of the tokens in the order of an epoch, read in pieces of `piece`.
std::vector<uint64_t> all_tokens(const DocumentPools& pools, uint64_t tokens, Key key,
                                 uint64_t piece) {
  PermutedDocuments permuted;
  std::vector<DocumentPart> parts;
  std::vector<uint64_t> out;
  for (uint64_t at = 0; at < tokens; at += piece) {
    permuted.find(pools, 0, key, at, std::min(piece, tokens - at), parts);
    for (const DocumentPart& part : parts)
      for (uint64_t t = 0; t < part.tokens; ++t) out.push_back(part.begin + t);
  }
  return out;
}

std::vector<uint64_t> random_lengths(uint64_t seed, size_t count, uint64_t most) {
  Rng rng(Key(seed).with("lengths"));
  std::vector<uint64_t> out(count);
  for (uint64_t& n : out) n = rng.below(most);
  return out;
}

TEST(DocumentPools, every_token_comes_once_whatever_the_pieces_it_is_read_in) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    uint64_t tokens = 0;
    const auto lengths = random_lengths(seed, 1 + seed * 10, 40);
    const auto begins = begins_of(lengths, tokens);
    const DocumentPools pools(begins, tokens);
    const auto whole = all_tokens(pools, tokens, Key(seed), tokens + 1);
    for (const uint64_t piece : {1u, 7u, 33u})
      EXPECT_EQ(all_tokens(pools, tokens, Key(seed), piece), whole);
    std::vector<uint64_t> sorted = whole;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted.size(), tokens);
    for (uint64_t t = 0; t < tokens; ++t) ASSERT_EQ(sorted[t], t);
  }
}

TEST(DocumentPools, documents_stay_whole_and_in_their_pool) {
  uint64_t tokens = 0;
  const auto lengths = random_lengths(3, 9000, 1000);
  const auto begins = begins_of(lengths, tokens);
  const DocumentPools pools(begins, tokens);
  ASSERT_GT(pools.size(), 3u);
  PermutedDocuments permuted;
  std::vector<DocumentPart> parts;
  for (size_t pool = 0; pool < pools.size(); ++pool) {
    permuted.find(pools, 0, Key(1), pools.begin_of(pool), pools.tokens_of(pool), parts);
    for (const DocumentPart& part : parts) {
      EXPECT_TRUE(part.is_start);
      EXPECT_TRUE(std::binary_search(begins->begin(), begins->end(), part.begin));
      EXPECT_EQ(pools.pool_at(part.begin), pool);
    }
    EXPECT_GE(pools.tokens_of(pool) + (pool + 1 == pools.size() ? kPoolTokens : 0), kPoolTokens);
  }
}

TEST(DocumentPools, the_order_is_a_pure_function_of_key_file_and_pool) {
  uint64_t tokens = 0;
  const auto begins = begins_of(random_lengths(1, 200, 40), tokens);
  const DocumentPools pools(begins, tokens);
  const auto order = [&](Key key) { return all_tokens(pools, tokens, key, 100); };
  EXPECT_EQ(order(Key(7)), order(Key(7)));
  EXPECT_NE(order(Key(7)), order(Key(8)));
  PermutedDocuments permuted;
  std::vector<DocumentPart> a, b;
  permuted.find(pools, 0, Key(7), 0, tokens, a);
  permuted.find(pools, 1, Key(7), 0, tokens, b);
  EXPECT_FALSE(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](const auto& x, const auto& y) { return x.begin == y.begin; }));
}

// Never to change: a running order depends on it.
TEST(DocumentPools, golden_order) {
  uint64_t tokens = 0;
  const auto begins = begins_of({3, 0, 2, 4, 1, 5}, tokens);
  const DocumentPools pools(begins, tokens);
  EXPECT_EQ(all_tokens(pools, tokens, Key(42), 100),
            std::vector<uint64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 9}));
}

}  // namespace
}  // namespace headrace
