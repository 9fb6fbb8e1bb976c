// SPDX-License-Identifier: Apache-2.0
#include "array/filters.h"

#include <gtest/gtest.h>

#include "array/array_fixture.h"
#include "base/rng.h"

namespace headrace {
namespace {

ByteList some_bytes(size_t n, uint64_t seed) {
  Rng rng{Key(seed)};
  ByteList out;
  while (out.size() < n) {
    const auto byte = static_cast<std::byte>(rng.next());
    out.insert(out.end(), std::min<size_t>(n - out.size(), 1 + rng.below(12)), byte);
  }
  return out;
}

constexpr uint32_t kI32 = static_cast<uint32_t>(DType::kI32);

std::vector<FilterChain> chains() {
  std::vector<FilterChain> out;
  for (const ChunkFilter f :
       {ChunkFilter::kZlib, ChunkFilter::kGzip, ChunkFilter::kLz4Block, ChunkFilter::kLz4Hdf5,
        ChunkFilter::kLzf, ChunkFilter::kZstd, ChunkFilter::kBlosc}) {
    out.push_back({{f}});
    out.push_back({{ChunkFilter::kShuffle, 4}, {f}});
    out.push_back({{ChunkFilter::kShuffle, 8}, {f}, {ChunkFilter::kFletcher32}});
    out.push_back({{ChunkFilter::kFletcher32}, {ChunkFilter::kShuffle, 2}, {f}});
    out.push_back({{ChunkFilter::kDelta, kI32}, {f}, {ChunkFilter::kCrc32c}});
  }
  out.push_back({{ChunkFilter::kShuffle, 3}});
  out.push_back({{ChunkFilter::kDelta, kI32}});
  out.push_back({{ChunkFilter::kFletcher32}});
  out.push_back({{ChunkFilter::kCrc32c}});
  out.push_back({{ChunkFilter::kCrc32c}, {ChunkFilter::kFletcher32}});
  out.push_back({});
  return out;
}

TEST(filters, what_was_stored_comes_back) {
  for (const FilterChain& chain : chains())
    for (const size_t n : {1u, 4u, 7u, 40u, 81u, 1024u, 70001u})
      for (const uint32_t skipped : {0u, 1u, 2u}) {
        const ByteList data = some_bytes(n, n);
        const ByteList stored = apply_filters(chain, skipped, data);
        Buffer out;
        const Status status = undo_filters(chain, skipped, stored, n, out);
        ASSERT_TRUE(status.ok()) << chain_text(chain) << " " << n << ": " << status.text();
        EXPECT_TRUE(std::equal(data.begin(), data.end(), out.bytes().begin(), out.bytes().end()))
            << chain_text(chain) << " " << n;
      }
}

TEST(filters, another_size_than_the_chunk_has_is_an_error) {
  for (const FilterChain& chain : chains())
    for (const int more : {-8, -1, 1, 4, 1000}) {
      const ByteList data = some_bytes(400, 1);
      Buffer out;
      const Status status = undo_filters(chain, 0, apply_filters(chain, 0, data),
                                         static_cast<uint64_t>(400 + more), out);
      EXPECT_EQ(status.code(), Code::kCorrupt) << chain_text(chain) << " " << more;
    }
}

TEST(filters, a_cut_chunk_is_an_error) {
  for (const FilterChain& chain : chains()) {
    const ByteList stored = apply_filters(chain, 0, some_bytes(200, 2));
    for (size_t n = 0; n < stored.size(); ++n) {
      Buffer out;
      EXPECT_FALSE(undo_filters(chain, 0, Bytes(stored).first(n), 200, out).ok())
          << chain_text(chain) << " cut at " << n;
    }
  }
}

// Without a checksum a changed byte may go unnoticed; it never does worse than give other bytes.
TEST(filters, changed_bytes_never_crash) {
  Rng rng{Key(3)};
  for (const FilterChain& chain : chains())
    for (int round = 0; round < 400; ++round) {
      ByteList stored = apply_filters(chain, 0, some_bytes(300, static_cast<uint64_t>(round)));
      for (uint64_t k = 1 + rng.below(4); k > 0 && !stored.empty(); --k)
        stored[rng.below(std::min<uint64_t>(stored.size(), k == 1 ? 24 : stored.size()))] =
            static_cast<std::byte>(rng.next());
      Buffer out;
      const Status status = undo_filters(chain, 0, stored, 300, out);
      EXPECT_TRUE(!status.ok() || out.size() == 300);
    }
}

TEST(filters, noise_never_crashes) {
  Rng rng{Key(4)};
  for (const FilterChain& chain : chains())
    for (int round = 0; round < 300; ++round) {
      ByteList stored(rng.below(200));
      for (std::byte& b : stored) b = static_cast<std::byte>(rng.next());
      Buffer out;
      const uint64_t expected = rng.below(500);
      const Status status =
          undo_filters(chain, static_cast<uint32_t>(rng.below(8)), stored, expected, out);
      EXPECT_TRUE(!status.ok() || out.size() == expected);
    }
}

TEST(filters, checksums_notice_every_changed_byte) {
  for (const ChunkFilter f : {ChunkFilter::kFletcher32, ChunkFilter::kCrc32c}) {
    const ByteList stored = apply_filters({{f}}, 0, some_bytes(100, 5));
    for (size_t i = 0; i < stored.size(); ++i) {
      ByteList bad = stored;
      bad[i] ^= std::byte{0x10};
      Buffer out;
      EXPECT_EQ(undo_filters({{f}}, 0, bad, 100, out).code(), Code::kCorrupt) << i;
    }
  }
}

TEST(filters, no_memory_for_what_cannot_come_out) {
  for (const FilterChain& chain : chains()) {
    Buffer out;
    const ByteList stored = apply_filters(chain, 0, some_bytes(20, 6));
    EXPECT_EQ(undo_filters(chain, 0, stored, uint64_t{1} << 44, out).code(), Code::kCorrupt)
        << chain_text(chain);
  }
}

TEST(filters, chains_that_cannot_be_undone_are_refused) {
  EXPECT_TRUE(check_chain({{ChunkFilter::kShuffle, 4}, {ChunkFilter::kZlib}}).ok());
  EXPECT_EQ(check_chain({{ChunkFilter::kLzf}, {ChunkFilter::kZlib}}).code(), Code::kUnsupported);
  EXPECT_EQ(check_chain({{ChunkFilter::kDelta, static_cast<uint32_t>(DType::kF16)}}).code(),
            Code::kUnsupported);
  EXPECT_EQ(chunk_filter_named("zstd"), ChunkFilter::kZstd);
  EXPECT_EQ(chunk_filter_named("brotli"), std::nullopt);
}

TEST(filters, PartsAreThePartsOfTheWhole) {
  for (const FilterChain& chain : chains()) {
    for (const size_t n : {size_t{16}, size_t{4096}, size_t{600'000}}) {
      const ByteList data = some_bytes(n, n);
      const ByteList stored = apply_filters(chain, 0, data);
      Rng rng{Key(n)};
      for (int i = 0; i < 8; ++i) {
        const size_t begin = i == 0 ? 0 : rng.below(n);
        ByteList part(i == 1 ? n - begin : rng.below(n - begin + 1));
        const Status status = undo_filters_in_part(chain, 0, stored, n, begin, part);
        ASSERT_TRUE(status.ok()) << chain_text(chain) << status.text();
        EXPECT_TRUE(
            std::equal(part.begin(), part.end(), data.begin() + static_cast<std::ptrdiff_t>(begin)))
            << chain_text(chain) << " at " << begin;
      }
      ByteList beyond(9);
      EXPECT_FALSE(undo_filters_in_part(chain, 0, stored, n, n - 8, beyond).ok());
    }
  }
}

}  // namespace
}  // namespace headrace
