// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/per_process.h"

namespace headrace {
namespace {

class HeapArena final : public Arena {
 public:
  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    return allocate_heap(bytes, alignment);
  }
  void release(MemoryBlock memory) override { release_heap(memory); }
  ArenaKind kind() const override { return ArenaKind::kHeap; }
};

class PageArena final : public Arena {
 public:
  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    return allocate_heap(bytes, std::max(alignment, kPageBytes));
  }
  void release(MemoryBlock memory) override { release_heap(memory); }
  ArenaKind kind() const override { return ArenaKind::kPage; }
  size_t alignment() const override { return kPageBytes; }
};

class PinnedArena final : public Arena {
 public:
  explicit PinnedArena(PinFunctions functions) : functions_(std::move(functions)) {}

  // Whole pages, so that no page is locked for two.
  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    if (bytes > SIZE_MAX - kPageBytes) throw std::bad_alloc();
    const size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    const MemoryBlock memory = allocate_heap(whole, std::max(alignment, kPageBytes));
    try {
      if (!functions_.lock({memory.data, memory.bytes})) throw std::bad_alloc();
    } catch (...) {
      release_heap(memory);
      throw;
    }
    return memory;
  }

  void release(MemoryBlock memory) override {
    // The driver locked the parent's pages; in a child it must not be called.
    if (fork_depth() == depth_) functions_.unlock({memory.data, memory.bytes});
    release_heap(memory);
  }
  ArenaKind kind() const override { return ArenaKind::kPinned; }

 private:
  const PinFunctions functions_;
  const uint64_t depth_ = fork_depth();
};

}  // namespace

std::optional<SharedName> Arena::name_of(const std::byte*) const {
  return std::nullopt;
}

MemoryBlock allocate_heap(size_t bytes, size_t alignment) {
  const bool huge = bytes >= kHugePageBytes;
  void* p = nullptr;
  if (posix_memalign(&p, huge ? kHugePageBytes : alignment, bytes) != 0) throw std::bad_alloc();
  if (huge) madvise(p, bytes, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(p), bytes};
}

void release_heap(MemoryBlock memory) {
  std::free(memory.data);
}

// Never destroyed: buffers of static storage may be freed after everything else.
std::shared_ptr<Arena> heap_arena() {
  static const auto& arena = *new std::shared_ptr<Arena>(std::make_shared<HeapArena>());
  return arena;
}

std::shared_ptr<Arena> page_arena() {
  static const auto& arena = *new std::shared_ptr<Arena>(std::make_shared<PageArena>());
  return arena;
}

std::shared_ptr<Arena> pinned_arena(PinFunctions functions) {
  return std::make_shared<PinnedArena>(std::move(functions));
}

}  // namespace headrace
