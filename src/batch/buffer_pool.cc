// SPDX-License-Identifier: Apache-2.0
#include "batch/buffer_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace headrace {
namespace {

constexpr size_t kSteps = 16;  // classes to a doubling
constexpr size_t kClasses = 1024;
// Below it every fourth class is used, so that values of about one size can use each other's
// memory. From here on, in slabs, the rest of a block shares huge pages with its neighbours: a run
// of 4.02 MiB in a block of 5 had a quarter more to clear.
constexpr size_t kFine = size_t{1} << 20;

// The class whose buffers all hold `bytes`: 16, 20, 24, 28, 32, 40, 48 … times 16 bytes; from kFine
// on 16, 17, 18 … times 64 KiB.
size_t class_of(size_t bytes) {
  const size_t lines = std::max<size_t>((bytes + 15) / 16, kSteps);
  const auto doubling = static_cast<size_t>(std::bit_width(lines)) - 5;
  const size_t step = size_t{1} << doubling;
  const size_t fine = doubling * kSteps + (lines + step - 1) / step - kSteps;
  return bytes >= kFine ? fine : (fine + 3) / 4 * 4;
}

size_t bytes_of(size_t size_class) {
  return ((size_class % kSteps + kSteps) << (size_class / kSteps)) * 16;
}

}  // namespace

// The arena of the pool's buffers: what they release it keeps, and hands out again.
class BufferPool::Recycler final : public Arena {
 public:
  Recycler(uint64_t keep_bytes, std::shared_ptr<Arena> arena)
      : arena_(arena ? std::move(arena) : heap_arena()),
        margin_(2 * std::max(kMargin, arena_->alignment())),
        keep_bytes_(keep_bytes) {}
  ~Recycler() override {
    for (const Blocks& blocks : idle_)
      for (const MemoryBlock& block : blocks) arena_->release(block);
  }

  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    const size_t size_class = class_asked(bytes);
    {
      MutexLock lock(mu_);
      if (const size_t k = class_with_idle(size_class); k < idle_.size()) {
        const MemoryBlock found = idle_[k].back();
        idle_[k].pop_back();
        idle_bytes_ -= found.bytes;
        return found;
      }
    }
    // What is not touched costs nothing.
    return arena_->allocate(std::max(bytes, block_of(size_class)), alignment);
  }

  void release(MemoryBlock block) override {
    Blocks dropped;  // freed after the lock
    {
      MutexLock lock(mu_);
      idle_bytes_ += block.bytes;
      idle_[class_held(block.bytes)].push_back(block);
      while (idle_bytes_ > keep_bytes_) drop_one(dropped);
    }
    free_all(dropped);
  }

  std::optional<SharedName> name_of(const std::byte* at) const override {
    return arena_->name_of(at);
  }
  ArenaKind kind() const override { return arena_->kind(); }
  size_t alignment() const override { return arena_->alignment(); }

  bool has_idle(size_t bytes) const {
    MutexLock lock(mu_);
    return class_with_idle(class_of(bytes)) < idle_.size();
  }

  uint64_t idle_bytes() const {
    MutexLock lock(mu_);
    return idle_bytes_;
  }

  uint64_t trim(uint64_t bytes) {
    Blocks dropped;
    uint64_t freed = 0;
    {
      MutexLock lock(mu_);
      const uint64_t before = idle_bytes_;
      while (idle_bytes_ > 0 && before - idle_bytes_ < bytes) drop_one(dropped);
      freed = before - idle_bytes_;
    }
    free_all(dropped);
    return freed;
  }

  // Nobody will ask for memory again.
  void close() {
    {
      MutexLock lock(mu_);
      keep_bytes_ = 0;
    }
    trim(~uint64_t{0});
  }

 private:
  using Blocks = std::vector<MemoryBlock>;

  // Buffers ask for a margin beside their bytes.  It is no part of the class, so that bytes of a
  // round number are not given a quarter more.
  size_t margin_of(size_t bytes) const {
    return bytes >= kHugePageBytes ? std::max(kPageBytes, margin_) : margin_;
  }
  size_t block_of(size_t size_class) const {
    const size_t bytes = bytes_of(size_class);
    return bytes + margin_of(bytes);
  }
  // The smallest class whose blocks are at least this large, and the largest whose are at most.
  size_t class_asked(size_t block) const {
    size_t k = class_of(block - std::min(block, margin_of(block)));
    while (block_of(k) < block) ++k;
    return k;
  }
  size_t class_held(size_t block) const {
    const size_t k = class_asked(block);
    return block_of(k) <= block || k == 0 ? k : k - 1;
  }
  // One of the class, or of those that waste less than half; idle_.size() where there is none.
  size_t class_with_idle(size_t size_class) const HEADRACE_REQUIRES(mu_) {
    const size_t end = std::min(size_class + kSteps, idle_.size());
    for (size_t k = size_class; k < end; ++k)
      if (!idle_[k].empty()) return k;
    return idle_.size();
  }
  // Of the class that holds most memory: sizes that are no longer asked for go first.
  void drop_one(Blocks& dropped) HEADRACE_REQUIRES(mu_) {
    const auto weight = [](const Blocks& list) {
      return list.empty() ? 0 : list.size() * list.front().bytes;
    };
    Blocks& heaviest =
        *std::max_element(idle_.begin(), idle_.end(),
                          [&](const Blocks& a, const Blocks& b) { return weight(a) < weight(b); });
    idle_bytes_ -= heaviest.back().bytes;
    dropped.push_back(heaviest.back());
    heaviest.pop_back();
  }
  void free_all(const Blocks& blocks) {
    for (const MemoryBlock& block : blocks) arena_->release(block);
  }

  const std::shared_ptr<Arena> arena_;
  const size_t margin_;
  mutable Mutex mu_;
  uint64_t keep_bytes_ HEADRACE_GUARDED_BY(mu_);
  // By class of size, four to a doubling; what came back last is warm and goes first.
  std::array<Blocks, kClasses> idle_ HEADRACE_GUARDED_BY(mu_);
  uint64_t idle_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
};

BufferPool::BufferPool(std::shared_ptr<Recycler> recycler) : recycler_(std::move(recycler)) {}

BufferPool::~BufferPool() {
  recycler_->close();
}

std::shared_ptr<BufferPool> BufferPool::make(uint64_t keep_bytes, std::shared_ptr<Arena> arena) {
  return std::shared_ptr<BufferPool>(
      new BufferPool(std::make_shared<Recycler>(keep_bytes, std::move(arena))));
}

SharedBuffer BufferPool::take(size_t bytes) {
  SharedBuffer buffer = take_later();
  buffer->resize(std::max(bytes, size_t{1}));  // of no bytes, too, data() is somewhere
  buffer->resize(bytes);
  return buffer;
}

SharedBuffer BufferPool::take_later() {
  return std::make_shared<Buffer>(recycler_);
}

bool BufferPool::has_idle(size_t bytes) const {
  return recycler_->has_idle(bytes);
}

uint64_t BufferPool::idle_bytes() const {
  return recycler_->idle_bytes();
}

uint64_t BufferPool::trim(uint64_t bytes) {
  return recycler_->trim(bytes);
}

}  // namespace headrace
