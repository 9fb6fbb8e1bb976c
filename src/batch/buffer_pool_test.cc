// SPDX-License-Identifier: Apache-2.0
#include "batch/buffer_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace {
namespace {

TEST(BufferPoolTest, ABufferThatCameBackServesItsSizeAgain) {
  const auto pool = BufferPool::make(uint64_t{1} << 40);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{4096},
                             size_t{97'000}, size_t{3} << 20, (size_t{38} << 20) + 5}) {
    SharedBuffer first = pool->take(bytes);
    EXPECT_EQ(first->size(), bytes);
    const std::byte* at = first->data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kAlignment, 0u);
    first.reset();
    EXPECT_EQ(pool->take(bytes)->data(), at) << bytes;
  }
}

TEST(BufferPoolTest, WasteIsBounded) {
  const auto pool = BufferPool::make(uint64_t{1} << 40);
  for (size_t bytes = 64; bytes < (1 << 22); bytes += bytes / 7 + 1) {
    const SharedBuffer fresh = pool->take(bytes);
    EXPECT_GE(fresh->capacity(), bytes);
    EXPECT_LE(fresh->capacity(), bytes + bytes / 4 + 4096) << bytes;
  }
  pool->take(1 << 20).reset();
  EXPECT_LT(pool->take(1 << 10)->capacity(), size_t{2} << 10)
      << "a large one is kept for large ones";
}

TEST(BufferPoolTest, IdleMemoryIsBounded) {
  constexpr uint64_t kKept = 1 << 20;
  const auto pool = BufferPool::make(kKept);
  std::vector<SharedBuffer> many;
  for (int i = 0; i < 100; ++i) many.push_back(pool->take(40'000 + 1000 * static_cast<size_t>(i)));
  many.clear();
  EXPECT_LE(pool->idle_bytes(), kKept);
  EXPECT_GT(pool->idle_bytes(), kKept / 2);
}

TEST(BufferPoolTest, TrimFreesWhatIsIdleAndSaysHowMuch) {
  const auto pool = BufferPool::make(uint64_t{1} << 30);
  std::vector<SharedBuffer> many;
  uint64_t held = 0;
  for (size_t i = 0; i < 50; ++i) {
    many.push_back(pool->take(10'000 + 3000 * i));
    held += many.back()->held_bytes();
  }
  EXPECT_EQ(pool->trim(1), 0u) << "what is in use stays";
  const SharedBuffer in_use = pool->take(500);
  many.clear();
  EXPECT_EQ(pool->idle_bytes(), held);
  EXPECT_EQ(pool->trim(0), 0u);
  const uint64_t freed = pool->trim(held / 2);
  EXPECT_GE(freed, held / 2);
  EXPECT_LE(freed, held / 2 + 200'000) << "not more than one buffer too many";
  EXPECT_EQ(pool->idle_bytes(), held - freed);
  EXPECT_EQ(pool->trim(UINT64_MAX), held - freed);
  EXPECT_EQ(pool->idle_bytes(), 0u);
  in_use->span()[499] = std::byte{1};
}

TEST(BufferPoolTest, ThePoolOfAnArenaHandsOutItsMemoryAlone) {
  const auto arena = shared_arena(1 << 20).value();
  const auto pool = BufferPool::make(1 << 20, arena);
  SharedBuffer first = pool->take(5000);
  const SharedName name = first->shared_name().value();
  first.reset();
  const SharedBuffer again = pool->take(5000);
  EXPECT_EQ(again->shared_name()->offset, name.offset) << "it went round";
  // Memory of elsewhere that was moved in does not stay, nor does a buffer without any.
  SharedBuffer changed = pool->take(100);
  *changed = Buffer(size_t{5000});
  changed.reset();
  SharedBuffer emptied = pool->take(100);
  const Buffer stolen = std::move(*emptied);
  emptied.reset();
  EXPECT_EQ(pool->idle_bytes(), 0u);
  EXPECT_TRUE(pool->take(5000)->shared_name().has_value());
}

TEST(BufferPoolTest, ABufferForLaterTakesWhatWasLetGoLast) {
  const auto pool = BufferPool::make(uint64_t{1} << 30);
  const SharedBuffer later = pool->take_later();
  EXPECT_EQ(later->capacity(), 0u);
  EXPECT_FALSE(pool->has_idle(100'000));
  SharedBuffer first = pool->take(100'000), second = pool->take(100'000);
  const std::byte* at = second->data();
  first.reset();
  second.reset();
  EXPECT_TRUE(pool->has_idle(100'000));
  Buffer moved = std::move(*later);  // as reads do
  moved.resize(100'000);
  EXPECT_EQ(moved.data(), at);
  moved = Buffer();
  EXPECT_EQ(pool->take(100'000)->data(), at) << "the memory comes back, whoever held it";
}

TEST(BufferPoolTest, RoundSizesAreNotGivenAQuarterMore) {
  for (const auto& arena : {heap_arena(), page_arena()}) {
    const auto pool = BufferPool::make(0, arena);
    for (size_t bytes = 4096; bytes <= (size_t{1} << 26); bytes *= 2)
      EXPECT_LT(pool->take(bytes)->capacity(), bytes + 3 * kPageBytes) << bytes;
  }
}

TEST(BufferPoolTest, BuffersOutliveThePool) {
  auto pool = BufferPool::make(1 << 20);
  const SharedBuffer buffer = pool->take(1000);
  pool.reset();
  buffer->span()[999] = std::byte{1};
}

}  // namespace
}  // namespace headrace
