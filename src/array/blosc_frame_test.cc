// SPDX-License-Identifier: Apache-2.0
#include "array/blosc_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "array/blosc.h"
#include "base/buffer.h"
#include "base/have.h"
#include "base/rng.h"

#if HEADRACE_HAVE_BLOSC
#include <blosc.h>

namespace headrace {
namespace {

// Numbers that a codec meets: some planes all the same, some noise, some runs.
std::vector<std::byte> numbers(size_t bytes, size_t item, uint64_t seed) {
  Rng rng{Key(seed)};
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    const size_t plane = i % item;
    const uint64_t value = plane == 0         ? 0
                           : plane == 1       ? rng.below(256)
                           : i / item % 7 < 5 ? i / item / 1000
                                              : rng.below(4);
    out[i] = static_cast<std::byte>(value);
  }
  return out;
}

struct Case {
  std::string codec;
  int shuffle;
  size_t item;
  size_t bytes;
  size_t block;  // 0: the library chooses
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* codec : {"lz4", "lz4hc", "zstd", "zlib", "blosclz"})
    for (const int shuffle : {BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE})
      for (const size_t item : {1u, 2u, 3u, 4u, 8u, 12u, 16u, 17u, 48u})
        for (const size_t elements : {1u, 131u, 20'001u})
          for (const size_t block : {0u, 640u, 50'000u})
            out.push_back({codec, shuffle, item, elements * item, block});
  return out;
}

std::vector<std::byte> pack(const Case& c, Bytes in) {
  std::vector<std::byte> out(in.size() + BLOSC_MAX_OVERHEAD);
  const int made = blosc_compress_ctx(5, c.shuffle, c.item, in.size(), in.data(), out.data(),
                                      out.size(), c.codec.c_str(), c.block, 1);
  out.resize(static_cast<size_t>(std::max(0, made)));
  return out;
}

std::string text(const Case& c) {
  return c.codec + " shuffle " + std::to_string(c.shuffle) + " item " + std::to_string(c.item) +
         " bytes " + std::to_string(c.bytes) + " block " + std::to_string(c.block);
}

TEST(blosc_frame, opens_what_the_library_packs) {
  size_t own = 0;
  for (const Case& c : cases()) {
    const auto data = numbers(c.bytes, c.item, c.bytes);
    const auto frame = pack(c, data);
    ASSERT_FALSE(frame.empty()) << text(c);
    const auto parsed = BloscFrame::parse(frame);
    if (!parsed) continue;
    ++own;
    for (const NextUse next_use : {NextUse::kRead, NextUse::kRest}) {
      std::vector<std::byte> out(c.bytes + 64);
      for (const size_t shift : {0u, 1u, 8u}) {  // memory that is not aligned
        const MutableBytes to(out.data() + shift, c.bytes);
        const Status status = parsed->open(0, to, next_use);
        ASSERT_TRUE(status.ok()) << text(c) << ": " << status.text();
        ASSERT_TRUE(std::equal(data.begin(), data.end(), to.begin())) << text(c);
      }
    }
  }
  EXPECT_GT(own, cases().size() / 3);  // the library's are bits, blosclz and odd blocks
}

TEST(blosc_frame, parts_are_parts_of_the_whole) {
  Rng rng{Key(3)};
  for (const Case& c : cases()) {
    const auto data = numbers(c.bytes, c.item, 1);
    const auto frame = pack(c, data);
    const auto parsed = BloscFrame::parse(frame);
    if (!parsed) continue;
    for (int k = 0; k < 8; ++k) {
      const size_t begin = rng.below(c.bytes / c.item) * c.item;
      const size_t size = (1 + rng.below((c.bytes - begin) / c.item)) * c.item;
      std::vector<std::byte> out(size);
      ASSERT_TRUE(parsed->holds(begin, size));
      const Status status = parsed->open(begin, out, NextUse::kRest);
      ASSERT_TRUE(status.ok()) << text(c) << ": " << status.text();
      ASSERT_TRUE(
          std::equal(out.begin(), out.end(), data.begin() + static_cast<std::ptrdiff_t>(begin)))
          << text(c) << " from " << begin << " on";
    }
    EXPECT_FALSE(parsed->holds(0, c.bytes + c.item));
    EXPECT_FALSE(parsed->holds(c.bytes + c.item, 0));
  }
}

TEST(blosc_frame, changed_bytes_never_crash) {
  Rng rng{Key(4)};
  std::vector<std::byte> out(40'001 * 8);
  for (const char* codec : {"lz4", "zstd", "zlib"})
    for (const size_t item : {1u, 4u, 8u}) {
      const Case c{codec, BLOSC_SHUFFLE, item, 40'001 * item, 0};
      const auto frame = pack(c, numbers(c.bytes, item, 2));
      for (int k = 0; k < 3000; ++k) {
        std::vector<std::byte> bad = frame;
        const bool in_head = rng.below(2) == 0;  // where the lengths and places stand
        for (uint64_t n = 1 + rng.below(3); n > 0; --n)
          bad[rng.below(in_head ? std::min<size_t>(64, bad.size()) : bad.size())] =
              static_cast<std::byte>(rng.below(256));
        if (rng.below(4) == 0) bad.resize(rng.below(bad.size()));
        const Result<size_t> got = unpack_blosc(bad, MutableBytes(out).first(c.bytes));
        EXPECT_TRUE(got.ok() ? got.value() <= c.bytes : !got.status().text().empty());
        (void)unpack_blosc_part(bad, c.bytes, 400 * item, MutableBytes(out).first(800 * item));
      }
    }
}

}  // namespace
}  // namespace headrace
#endif
