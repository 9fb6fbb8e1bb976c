// SPDX-License-Identifier: Apache-2.0
#include "array/encode.h"

#include <gtest/gtest.h>

#include "array/filters.h"
#include "base/rng.h"

namespace headrace {
namespace {

std::vector<std::byte> some_bytes(size_t n) {
  Rng rng{Key(n)};
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(rng.below(i % 4 == 0 ? 200 : 3));
  return out;
}

FilterChain chain_of(Compressor compressor, bool shuffle, uint32_t item) {
  FilterChain chain;
  if (shuffle) chain.push_back({ChunkFilter::kShuffle, item});
  switch (compressor) {
    case Compressor::kNone:
      break;
    case Compressor::kBloscLz4:
    case Compressor::kBloscZstd:
      chain.push_back({ChunkFilter::kBlosc});
      break;
    case Compressor::kZstd:
      chain.push_back({ChunkFilter::kZstd});
      break;
    case Compressor::kGzip:
      chain.push_back({ChunkFilter::kGzip});
      break;
    case Compressor::kZlib:
      chain.push_back({ChunkFilter::kZlib});
      break;
  }
  return chain;
}

TEST(encode, what_is_packed_opens_again_and_is_the_same_every_time) {
  for (const std::string_view name : {"none", "blosc-lz4", "blosc-zstd", "zstd", "gzip", "zlib"})
    for (const uint32_t item : {1u, 2u, 4u, 8u})
      for (const bool shuffle : {false, true})
        for (const size_t n : {1u, 7u, 64u, 4099u, 300000u}) {
          const std::vector<std::byte> data = some_bytes(n);
          const ChunkEncoding encoding{compressor_named(name).value(), 3, item, shuffle};
          Buffer stored;
          Buffer again;
          ASSERT_TRUE(encode_chunk(encoding, data, stored).ok()) << name;
          ASSERT_TRUE(encode_chunk(encoding, data, again).ok());
          EXPECT_TRUE(std::ranges::equal(stored.bytes(), again.bytes()));
          Buffer opened;
          const Status status = undo_filters(chain_of(encoding.compressor, shuffle, item), 0,
                                             stored.bytes(), n, opened);
          ASSERT_TRUE(status.ok()) << name << " " << n << ": " << status.text();
          EXPECT_TRUE(std::ranges::equal(data, opened.bytes())) << name << " " << item << " " << n;
        }
}

TEST(encode, compresses) {
  const std::vector<std::byte> data(100000, std::byte{5});
  for (const std::string_view name : {"blosc-lz4", "blosc-zstd", "zstd", "gzip", "zlib"}) {
    Buffer stored;
    ASSERT_TRUE(encode_chunk({compressor_named(name).value(), 5, 4, false}, data, stored).ok());
    EXPECT_LT(stored.size(), 2000u) << name;
  }
  EXPECT_FALSE(compressor_named("lzma").has_value());
}

}  // namespace
}  // namespace headrace
