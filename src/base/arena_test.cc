// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "base/guard.h"

namespace headrace {
namespace {

bool is_aligned(const std::byte* p, size_t alignment) {
  return reinterpret_cast<uintptr_t>(p) % alignment == 0;
}

// Locks nothing and remembers what it was asked.
struct PinBook {
  std::map<std::byte*, size_t> locked;
  int locks = 0;
  int unlocks = 0;
  bool refuses = false;

  PinFunctions functions() {
    return {[this](MutableBytes m) {
              ++locks;
              if (refuses) return false;
              return locked.emplace(m.data(), m.size()).second;
            },
            [this](MutableBytes m) {
              ++unlocks;
              const auto found = locked.find(m.data());
              ASSERT_NE(found, locked.end()) << "unlocked what was not locked";
              EXPECT_EQ(found->second, m.size());
              locked.erase(found);
            }};
  }
};

struct NamedArena {
  std::string name;
  std::shared_ptr<Arena> arena;
};

// Every kind, and none: what all of them promise to a buffer.
std::vector<NamedArena> all_arenas(PinBook& pins) {
  return {{"none", nullptr},
          {"heap", heap_arena()},
          {"page", page_arena()},
          {"slab", slab_arena()},
          {"shared", shared_arena(1 << 20).value()},
          {"pinned", pinned_arena(pins.functions())},
          {"pinned slabs", pinned_slab_arena(pins.functions())}};
}

constexpr size_t kSizes[] = {
    1, 63, 64, 65, 4095, 4096, 4097, 100'000, (2 << 20) - 1, 2 << 20, (5 << 20) + 3};

TEST(ArenaTest, BuffersOfEveryKindKeepAlignmentAndMargin) {
  PinBook pins;
  for (const NamedArena& kind : all_arenas(pins)) {
    SCOPED_TRACE(kind.name);
    const size_t alignment = kind.arena ? kind.arena->alignment() : kAlignment;
    for (const size_t size : kSizes) {
      Buffer buffer(kind.arena);
      EXPECT_EQ(buffer.margin(), nullptr);
      EXPECT_EQ(buffer.held_bytes(), 0u);
      buffer.resize(size);
      EXPECT_TRUE(is_aligned(buffer.data(), alignment)) << size;
      EXPECT_EQ(buffer.margin() + kMargin, buffer.data());
      EXPECT_GE(buffer.capacity(), size);
      EXPECT_GE(buffer.held_bytes(), buffer.capacity() + kMargin + 1);
      EXPECT_LE(buffer.held_bytes(), size + size_t{3} * kPageBytes);
      // All that is promised may be written: ASan would see a byte too many.
      std::memset(buffer.margin(), 1, kMargin + buffer.capacity() + 1);
    }
  }
}

TEST(ArenaTest, DataOfAPageArenaMayBeReadInWholePages) {
  for (const size_t size : kSizes) {
    Buffer buffer(page_arena());
    buffer.resize(size);
    EXPECT_TRUE(is_aligned(buffer.data(), kPageBytes));
    std::memset(buffer.data(), 1, (size + kPageBytes - 1) / kPageBytes * kPageBytes);
  }
}

TEST(ArenaTest, ABufferKeepsItsMemoryWhenItShrinksAndItsArenaWhenItMoves) {
  PinBook pins;
  for (const NamedArena& kind : all_arenas(pins)) {
    SCOPED_TRACE(kind.name);
    Buffer buffer(kind.arena);
    buffer.resize(5000);
    std::byte* at = buffer.data();
    buffer.resize(10);
    buffer.resize(5000);
    EXPECT_EQ(buffer.data(), at);
    Buffer other = std::move(buffer);
    EXPECT_EQ(other.data(), at);
    EXPECT_EQ(buffer.data(), nullptr);  // NOLINT: the promise of moved-from buffers
    EXPECT_EQ(buffer.arena(), kind.arena);
    Buffer plain(size_t{100});
    plain = std::move(other);
    EXPECT_EQ(plain.data(), at);
    EXPECT_EQ(plain.arena(), kind.arena);
  }
}

TEST(ArenaTest, AnArenaOutlivesThoseWhoLetGoOfIt) {
  PinBook pins;
  for (NamedArena& kind : all_arenas(pins)) {
    Buffer buffer(kind.arena);
    const std::weak_ptr<Arena> watch = kind.arena;
    kind.arena.reset();
    buffer.resize(70'000);
    std::memset(buffer.data(), 7, buffer.size());
    if (kind.name == "shared" || kind.name.starts_with("pinned")) {
      EXPECT_FALSE(watch.expired());
      buffer = Buffer();
      EXPECT_TRUE(watch.expired()) << "the last buffer lets go of its arena";
    }
  }
}

TEST(ArenaTest, MemoryThatCannotBeHadIsAStatus) {
  PinBook pins;
  for (const NamedArena& kind : all_arenas(pins)) {
    SCOPED_TRACE(kind.name);
    Buffer buffer(kind.arena);
    buffer.resize(100);
    const std::byte* at = buffer.data();
    const Status status = guard([&]() -> Status {
      buffer.resize(SIZE_MAX - 100);
      return {};
    });
    EXPECT_EQ(status.code(), Code::kExhausted);
    EXPECT_EQ(buffer.data(), at) << "it is as it was";
    EXPECT_EQ(buffer.size(), 100u);
  }
  // What the machine itself refuses.
  Buffer shared(shared_arena(1 << 20).value());
  EXPECT_THROW(shared.resize(size_t{1} << 60), std::bad_alloc);
  PinBook refusing;
  refusing.refuses = true;
  Buffer pinned(pinned_arena(refusing.functions()));
  EXPECT_THROW(pinned.resize(1000), std::bad_alloc);
  EXPECT_EQ(refusing.unlocks, 0);
}

TEST(ArenaTest, PinningIsOneCallEachWayForEachAllocation) {
  PinBook pins;
  {
    const auto arena = pinned_arena(pins.functions());
    EXPECT_EQ(arena->kind(), ArenaKind::kPinned);
    Buffer first(arena), second(arena);
    first.resize(1000);
    second.resize(3 << 20);
    first.resize(10);
    first.resize(1000);
    EXPECT_EQ(pins.locks, 2);
    ASSERT_EQ(pins.locked.size(), 2u);
    for (const auto& [data, bytes] : pins.locked) {
      EXPECT_TRUE(is_aligned(data, kPageBytes));
      EXPECT_EQ(bytes % kPageBytes, 0u) << "no page is locked for two";
    }
    first.resize(100'000);  // grows: other memory
    EXPECT_EQ(pins.locks, 3);
    EXPECT_EQ(pins.unlocks, 1);
  }
  EXPECT_EQ(pins.unlocks, 3);
  EXPECT_TRUE(pins.locked.empty());
}

TEST(ArenaTest, ManyPinnedBuffersTakeFewCalls) {
  PinBook pins;
  {
    const auto arena = pinned_slab_arena(pins.functions());
    EXPECT_EQ(arena->kind(), ArenaKind::kPinned);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 300; ++i) {
      buffers.emplace_back(arena).resize(100'000);
      std::memset(buffers.back().data(), i, buffers.back().size());
    }
    EXPECT_LE(pins.locks, 300 / 16 + 1);
    for (const Buffer& b : buffers) {
      auto slab = pins.locked.upper_bound(const_cast<std::byte*>(b.data()));
      ASSERT_NE(slab, pins.locked.begin());
      --slab;
      EXPECT_LE(b.data() + b.capacity(), slab->first + slab->second) << "it lies in what is locked";
    }
    for (int i = 0; i < 300; ++i)
      EXPECT_EQ(buffers[static_cast<size_t>(i)].data()[99'999], static_cast<std::byte>(i & 255));
    const int before = pins.locks;
    buffers.emplace_back(arena).resize(20 << 20);
    EXPECT_EQ(pins.locks, before + 1) << "a large one is locked by itself";
    buffers.clear();
    EXPECT_LE(pins.locked.size(), 1u) << "one slab of a size is kept";
  }
  EXPECT_EQ(pins.unlocks, pins.locks);
  EXPECT_TRUE(pins.locked.empty());
  PinBook refusing;
  refusing.refuses = true;
  Buffer pinned(pinned_slab_arena(refusing.functions()));
  EXPECT_THROW(pinned.resize(1000), std::bad_alloc);
  EXPECT_EQ(refusing.unlocks, 0);
}

TEST(ArenaTest, OnlySharedMemoryHasAName) {
  PinBook pins;
  for (const NamedArena& kind : all_arenas(pins)) {
    Buffer buffer(kind.arena);
    EXPECT_FALSE(buffer.shared_name().has_value());
    buffer.resize(1000);
    EXPECT_EQ(buffer.shared_name().has_value(), kind.name == "shared") << kind.name;
  }
  const auto arena = shared_arena(1 << 20).value();
  const int other = 0;
  EXPECT_FALSE(arena->name_of(reinterpret_cast<const std::byte*>(&other)).has_value());
}

TEST(ArenaTest, SegmentsOfNoSizeAreRefused) {
  EXPECT_EQ(shared_arena(0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(shared_arena(UINT64_MAX).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(shared_arena(uint64_t{1} << 60).ok()) << "no machine has so much";
}

TEST(SlabArenaTest, BlocksOfManySizesDoNotOverlapAndComeBack) {
  const auto arena = slab_arena();
  std::map<std::byte*, MemoryBlock> taken;
  for (int round = 0; round < 3; ++round) {
    for (size_t k = 0; k < 400; ++k) {
      const size_t bytes = 1 + k * 7919 % (size_t{3} << 19);
      const MemoryBlock block = arena->allocate(bytes, kAlignment);
      ASSERT_GE(block.bytes, bytes);
      std::memset(block.data, static_cast<int>(k), bytes);
      ASSERT_TRUE(taken.emplace(block.data, block).second);
    }
    const std::byte* end = nullptr;
    for (const auto& [at, block] : taken) {
      ASSERT_LE(end, at);
      end = at + block.bytes;
    }
    for (const auto& [at, block] : taken) arena->release(block);
    taken.clear();
  }
}

// Runs of remote shards: a slab has room for two and more, and little of it is unused.
TEST(SlabArenaTest, BlocksOfSomeMegabytesShareSlabs) {
  const auto arena = slab_arena();
  for (const size_t bytes : {size_t{4'063'232}, size_t{5} << 20, (size_t{8} << 20) + 4096,
                             size_t{16} << 20, (size_t{16} << 20) + 1, size_t{40} << 20}) {
    SCOPED_TRACE(bytes);
    std::map<std::byte*, MemoryBlock> taken;
    for (int k = 0; k < 5; ++k) {
      const MemoryBlock block = arena->allocate(bytes, kAlignment);
      ASSERT_GE(block.bytes, bytes);
      ASSERT_LE(block.bytes, bytes + kPageBytes);
      std::memset(block.data, k, bytes);
      ASSERT_TRUE(taken.emplace(block.data, block).second);
    }
    size_t neighbours = 0;
    const std::byte* end = nullptr;
    for (const auto& [at, block] : taken) {
      ASSERT_LE(end, at);
      neighbours += at == end ? 1 : 0;
      end = at + block.bytes;
      ASSERT_EQ(at[0], at[bytes - 1]) << "another one has written there";
    }
    const bool is_small = bytes <= size_t{5} << 20;
    EXPECT_GE(neighbours, is_small ? 2u : 0u);
    for (const auto& [at, block] : taken) arena->release(block);
  }
}

constexpr size_t kOneSlab = size_t{16} << 20;  // a block of this size has its slab to itself

// Blocks that go back with their arena; nobody writes to them.
std::set<std::byte*> take_and_drop(size_t blocks) {
  const auto arena = slab_arena();
  std::set<std::byte*> out;
  for (size_t k = 0; k < blocks; ++k) out.insert(arena->allocate(kOneSlab, kAlignment).data);
  for (std::byte* data : out) arena->release({data, kOneSlab});
  return out;
}

uint64_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages;
  return pages * kPageBytes;
}

bool is_mapped(std::byte* page) {
  return msync(page, kPageBytes, MS_ASYNC) == 0;
}

TEST(SlabReserveTest, MemoryOfAnArenaServesTheNextOne) {
  const std::set<std::byte*> before = take_and_drop(5);
  EXPECT_EQ(take_and_drop(5), before);
}

TEST(SlabReserveTest, AtMostAGibibyteStays) {
  const auto arena = slab_arena();
  std::vector<MemoryBlock> blocks;
  for (int k = 0; k < 96; ++k) blocks.push_back(arena->allocate(kOneSlab, kAlignment));
  const uint64_t held = mapped_bytes();
  for (const MemoryBlock& block : blocks) arena->release(block);
  const uint64_t kept = uint64_t{65} * kOneSlab;  // and one that the arena keeps
  EXPECT_EQ(held - mapped_bytes(), 96 * kOneSlab - kept);
}

TEST(SlabReserveTest, FreshSlabsTakeThePlaceOfReservedOnesOfAnotherSize) {
  take_and_drop(8);
  const uint64_t before = mapped_bytes();
  const auto arena = slab_arena();
  std::vector<MemoryBlock> blocks;
  for (int k = 0; k < 8; ++k) blocks.push_back(arena->allocate(size_t{10} << 20, kAlignment));
  EXPECT_LE(mapped_bytes(), before + (size_t{1} << 20));
  for (const MemoryBlock& block : blocks) arena->release(block);
}

TEST(SlabReserveTest, AForkedChildHasWhatIsInUseAndNothingOfTheReserve) {
  std::byte* reserved = *take_and_drop(2).begin();
  const auto arena = slab_arena();
  const MemoryBlock used = arena->allocate(kOneSlab, kAlignment);
  used.data[100] = std::byte{7};
  if (used.data == reserved) reserved = *take_and_drop(1).begin();
  ASSERT_TRUE(is_mapped(reserved));
  const pid_t child = fork();
  if (child == 0) {
    const bool is_right = used.data[100] == std::byte{7} && !is_mapped(reserved) &&
                          slab_arena()->allocate(kOneSlab, kAlignment).data != nullptr;
    _exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  arena->release(used);
}

TEST(SharedArenaTest, WhatWasFreedIsUsedAgainInWhole) {
  const auto arena = shared_arena(1 << 20).value();
  constexpr size_t kPiece = 64 << 10;
  std::vector<MemoryBlock> pieces;
  for (int i = 0; i < 16; ++i) pieces.push_back(arena->allocate(kPiece, kAlignment));
  const uint64_t segment = arena->name_of(pieces[0].data)->segment;
  for (const MemoryBlock& m : pieces) EXPECT_EQ(arena->name_of(m.data)->segment, segment);
  EXPECT_NE(arena->name_of(arena->allocate(1, 64).data)->segment, segment) << "it is full";
  // Freed in an order that leaves gaps before, behind and between: they join.
  for (const size_t i : {3u, 1u, 2u, 0u}) arena->release(pieces[i]);
  const MemoryBlock joined = arena->allocate(4 * kPiece, kAlignment);
  EXPECT_EQ(joined.data, pieces[0].data);
  EXPECT_EQ(arena->name_of(joined.data)->segment, segment);
}

TEST(SharedArenaTest, AnAllocationLargerThanASegmentGetsItsOwn) {
  const auto arena = shared_arena(1 << 20).value();
  Buffer large(arena), small(arena);
  large.resize(3 << 20);
  small.resize(100);
  const SharedName name = large.shared_name().value();
  EXPECT_NE(name.segment, small.shared_name()->segment);
  EXPECT_GE(name.segment_bytes, large.size() + name.offset);
  const int fd = name.fd;
  large = Buffer();
  EXPECT_EQ(lseek(fd, 0, SEEK_END), -1) << "its descriptor is closed with it";
}

// Blocks of a file: how much memory the segment holds.
TEST(SharedArenaTest, FreedMemoryGoesBackToTheMachine) {
  const auto arena = shared_arena(8 << 20).value();
  Buffer stays(arena), goes(arena);
  stays.resize(100);
  goes.resize(4 << 20);
  std::memset(goes.data(), 1, goes.size());
  const int fd = goes.shared_name()->fd;
  const auto resident = [fd] {
    const off_t end = lseek(fd, 0, SEEK_END);
    uint64_t bytes = 0;
    for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0 && at < end;) {
      const off_t hole = lseek(fd, at, SEEK_HOLE);
      bytes += static_cast<uint64_t>(hole - at);
      at = lseek(fd, hole, SEEK_DATA);
    }
    return bytes;
  };
  EXPECT_GE(resident(), uint64_t{4} << 20);
  goes = Buffer();
  EXPECT_LE(resident(), uint64_t{2} << 20);
}

TEST(SharedArenaTest, ThreadsDoNotGetTheSameBytes) {
  const auto arena = shared_arena(256 << 10).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&arena, t] {
      std::vector<Buffer> held;
      for (size_t round = 0; round < 400; ++round) {
        Buffer& buffer = held.size() < 16 ? held.emplace_back(arena) : held[round % 16];
        for (const std::byte b : buffer.bytes()) ASSERT_EQ(b, std::byte(t));
        buffer = Buffer(arena);
        buffer.resize(1 + round * 7919 % 30'000);
        std::memset(buffer.data(), t, buffer.size());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace headrace
