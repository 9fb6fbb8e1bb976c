// SPDX-License-Identifier: Apache-2.0
#include "base/lz4.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/have.h"
#include "base/rng.h"

#if HEADRACE_HAVE_LZ4
#include <lz4.h>

namespace headrace {
namespace {

std::vector<std::byte> pack(const std::vector<std::byte>& in) {
  std::vector<std::byte> out(static_cast<size_t>(LZ4_compressBound(static_cast<int>(in.size()))));
  const int made = LZ4_compress_default(reinterpret_cast<const char*>(in.data()),
                                        reinterpret_cast<char*>(out.data()),
                                        static_cast<int>(in.size()), static_cast<int>(out.size()));
  out.resize(static_cast<size_t>(made));
  return out;
}

// A pattern of `period` bytes, with `breaks` other bytes in it.
std::vector<std::byte> pattern(size_t bytes, size_t period, size_t breaks, uint64_t seed) {
  Rng rng{Key(seed)};
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i)
    out[i] = i < period ? static_cast<std::byte>(rng.below(256)) : out[i - period];
  for (size_t k = 0; k < breaks; ++k) out[rng.below(bytes)] = static_cast<std::byte>(k);
  return out;
}

TEST(lz4, runs_come_back) {
  size_t of_runs = 0;
  for (const size_t period : {1u, 2u, 3u, 4u, 7u, 8u, 64u, 1000u})
    for (const size_t breaks : {0u, 1u, 20u, 400u})
      for (const size_t bytes : {1u, 13u, 1000u, 131'072u, 1'000'003u}) {
        const auto in = pattern(bytes, period, breaks, bytes + period);
        const auto packed = pack(in);
        of_runs += packed.size() < bytes / 64 ? 1u : 0u;
        std::vector<std::byte> out(bytes);
        const Result<size_t> got = unpack_lz4(packed, out);
        ASSERT_TRUE(got.ok()) << period << ' ' << breaks << ' ' << bytes;
        ASSERT_EQ(got.value(), bytes);
        ASSERT_EQ(out, in) << period << ' ' << breaks << ' ' << bytes;
      }
  EXPECT_GT(of_runs, 20u);
}

TEST(lz4, damaged_runs_are_what_liblz4_says_or_an_error) {
  Rng rng{Key(8)};
  std::vector<std::byte> out(131'072);
  std::vector<std::byte> theirs(out.size());
  const auto whole = pack(pattern(out.size(), 3, 30, 1));
  ASSERT_LT(whole.size(), out.size() / 64);
  for (int k = 0; k < 20'000; ++k) {
    auto bad = whole;
    for (uint64_t n = 1 + rng.below(3); n > 0; --n)
      bad[rng.below(bad.size())] = static_cast<std::byte>(rng.below(256));
    if (rng.below(4) == 0) bad.resize(1 + rng.below(bad.size() - 1));
    const Result<size_t> got = unpack_lz4(bad, out);
    const int wanted = LZ4_decompress_safe(
        reinterpret_cast<const char*>(bad.data()), reinterpret_cast<char*>(theirs.data()),
        static_cast<int>(bad.size()), static_cast<int>(theirs.size()));
    if (wanted < 0) continue;  // it is stricter about how a block ends
    ASSERT_TRUE(got.ok());
    ASSERT_EQ(got.value(), static_cast<size_t>(wanted));
    ASSERT_TRUE(std::equal(out.begin(), out.begin() + wanted, theirs.begin()));
  }
}

}  // namespace
}  // namespace headrace
#endif
