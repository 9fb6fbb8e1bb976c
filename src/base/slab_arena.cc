// SPDX-License-Identifier: Apache-2.0
//
// The slab arena: blocks of equal size side by side in slabs of huge pages.  For very many buffers
// of some hundred KB, as reads from far away want them: on 4 KiB pages each of them costs dozens of
// page faults when it is fresh, and as many misses of the address cache whenever it is used.  And
// for runs of some MiB: by itself a run of 3.9 MiB would have one huge page and 490 small ones.
//
//   size 102,464   ──► slab [ block | block | free | block | … ]   8 MiB
//                      slab [ free  | block | …                ]
//   size 4,063,232 ──► slab [ block | free |]                      8 MiB
//
// Fresh memory is slow: the kernel clears it, and the host of a virtual machine may have to find it
// first.  So slabs that become empty stay with the process, for this arena or the next one:
//
//   in use ──empty──► reserve ──asked for──► in use
//                        └── beyond 1 GiB, or for a fresh slab of another size ──► the machine
//
// In the reserve the kernel may take their pages whenever it is short of memory (MADV_FREE), and a
// forked child has none of them.
//
// Slabs may be locked as a whole, for a device that copies from them: locking takes a driver longer
// than copying a block does, and holds up whoever else calls it.
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "base/arena.h"
#include "base/mutex.h"
#include "base/per_process.h"

namespace headrace {
namespace {

constexpr size_t kSlabBytes = size_t{8} << 20;  // at least
constexpr size_t kMostBytes = size_t{32} << 20;
constexpr size_t kLargest = size_t{16} << 20;  // larger ones are the heap's
constexpr size_t kLockedBlocks = 16;           // of a locked slab: what is locked is not counted
constexpr size_t kWasteShare = 16;             // what no block covers, at most about 1 of so many
constexpr size_t kMostReserve = size_t{1} << 30;

size_t block_bytes(size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// The smallest slab of whole huge pages in which blocks of this size leave little room unused; a
// locked one is of so many blocks.
size_t slab_bytes(size_t block, bool is_locked) {
  if (is_locked) return block * std::clamp<size_t>(kSlabBytes / block, 1, kLockedBlocks);
  size_t bytes = kSlabBytes;
  while (bytes < kMostBytes && (bytes < block || bytes % block > bytes / kWasteShare))
    bytes += kHugePageBytes;
  return bytes;
}

// At a multiple of a huge page.
std::byte* map_slab(size_t bytes) {
  const size_t room = bytes + kHugePageBytes;
  void* p = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(p);
  const size_t lead =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(p) % kHugePageBytes) % kHugePageBytes;
  if (lead > 0) munmap(begin, lead);
  if (lead < kHugePageBytes) munmap(begin + lead + bytes, kHugePageBytes - lead);
  madvise(begin + lead, bytes, MADV_HUGEPAGE);
  return begin + lead;
}

// Slabs that no arena uses.  Thread-safe.
class SlabReserve {
 public:
  // Null where there is none of this size: then as much of other sizes goes, so that what is in use
  // and what is reserved are never more than what was in use once.
  std::byte* take(size_t bytes) {
    MutexLock lock(mu_);
    std::vector<std::byte*>& slabs = slabs_[bytes];
    if (slabs.empty()) {
      drop(bytes);
      return nullptr;
    }
    std::byte* base = slabs.back();
    slabs.pop_back();
    bytes_ -= bytes;
    madvise(base, bytes, MADV_DOFORK);
    return base;
  }

  void keep(std::byte* base, size_t bytes) {
    if (madvise(base, bytes, MADV_FREE) != 0 || madvise(base, bytes, MADV_DONTFORK) != 0) {
      munmap(base, bytes);
      return;
    }
    MutexLock lock(mu_);
    slabs_[bytes].push_back(base);
    bytes_ += bytes;
    if (bytes_ > kMostReserve) drop(bytes_ - kMostReserve);
  }

 private:
  void drop(size_t bytes) HEADRACE_REQUIRES(mu_) {
    size_t dropped = 0;
    for (auto& [size, slabs] : slabs_)
      for (; dropped < bytes && !slabs.empty(); dropped += size) {
        munmap(slabs.back(), size);
        slabs.pop_back();
      }
    bytes_ -= dropped;
  }

  Mutex mu_;
  std::map<size_t, std::vector<std::byte*>> slabs_ HEADRACE_GUARDED_BY(mu_);  // by their size
  size_t bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
};

// Never destroyed: buffers of static storage may be freed after everything else.
SlabReserve& reserve() {
  static const auto& reserve =
      *new PerProcess<SlabReserve>([] { return std::make_unique<SlabReserve>(); });
  return *reserve;
}

std::byte* take_slab(size_t bytes) {
  std::byte* base = reserve().take(bytes);
  return base != nullptr ? base : map_slab(bytes);
}

// Memory of the reserve, or fresh and locked where `pins` says how.
class SlabMemory {
 public:
  SlabMemory(size_t bytes, const PinFunctions& pins)
      : pins_(pins), bytes_(bytes), base_(pins.lock ? map_slab(bytes) : take_slab(bytes)) {
    if (!pins_.lock) return;
    try {
      if (!pins_.lock({base_, bytes_})) throw std::bad_alloc();
    } catch (...) {
      munmap(base_, bytes_);
      throw;
    }
  }
  // The driver locked the parent's pages; in a child it must not be called.
  ~SlabMemory() {
    if (!pins_.lock) {
      reserve().keep(base_, bytes_);
      return;
    }
    if (pins_.unlock && fork_depth() == depth_) pins_.unlock({base_, bytes_});
    munmap(base_, bytes_);
  }
  SlabMemory(const SlabMemory&) = delete;
  SlabMemory& operator=(const SlabMemory&) = delete;

  std::byte* base() const { return base_; }
  size_t size() const { return bytes_; }

 private:
  const PinFunctions& pins_;
  const size_t bytes_;
  std::byte* const base_;
  const uint64_t depth_ = fork_depth();
};

// One thread at a time.
class Slab {
 public:
  Slab(size_t block, const PinFunctions& pins)
      : memory_(slab_bytes(block, pins.lock != nullptr), pins),
        block_(block),
        blocks_(memory_.size() / block) {
    free_.reserve(blocks_);
    for (size_t k = blocks_; k-- > 0;) free_.push_back(static_cast<uint32_t>(k));
  }
  bool is_full() const { return free_.empty(); }
  bool is_empty() const { return free_.size() == blocks_; }
  std::byte* take() {
    std::byte* block = base() + size_t{free_.back()} * block_;
    free_.pop_back();
    return block;
  }
  void give_back(const std::byte* block) {
    free_.push_back(static_cast<uint32_t>(static_cast<size_t>(block - base()) / block_));
  }
  std::byte* base() const { return memory_.base(); }
  size_t block() const { return block_; }

 private:
  const SlabMemory memory_;
  const size_t block_, blocks_;
  std::vector<uint32_t> free_;  // the block that came back last goes first: it is in the caches
};

class SlabArena final : public Arena {
 public:
  SlabArena(PinFunctions pins, std::shared_ptr<Arena> large)
      : pins_(std::move(pins)), large_(std::move(large)) {}

  MemoryBlock allocate(size_t bytes, size_t alignment) override {
    if (bytes > kLargest) return large_->allocate(bytes, alignment);
    MutexLock lock(mu_);
    const size_t block = block_bytes(bytes);
    std::map<std::byte*, Slab*>& open = open_[block];
    if (open.empty()) {
      auto made = std::make_unique<Slab>(block, pins_);
      Slab& slab = *slabs_.emplace(made->base(), std::move(made)).first->second;
      open.emplace(slab.base(), &slab);
    }
    // The one that lies first: those behind it become empty and go.
    Slab& slab = *open.begin()->second;
    std::byte* data = slab.take();
    if (slab.is_full()) open.erase(open.begin());
    return {data, block};
  }

  void release(MemoryBlock memory) override {
    if (memory.bytes > kLargest) return large_->release(memory);
    MutexLock lock(mu_);
    const auto found = std::prev(slabs_.upper_bound(memory.data));
    Slab& slab = *found->second;
    // What others still hold keeps the slab, but not the pages of a large block.
    if (memory.bytes >= kHugePageBytes && !pins_.lock)
      madvise(memory.data, memory.bytes, MADV_DONTNEED);
    slab.give_back(memory.data);
    std::map<std::byte*, Slab*>& open = open_[slab.block()];
    open.emplace(found->first, &slab);
    if (!slab.is_empty() || open.size() == 1) return;  // one is kept
    open.erase(found->first);
    slabs_.erase(found);
  }

  ArenaKind kind() const override { return large_->kind(); }

 private:
  const PinFunctions pins_;
  const std::shared_ptr<Arena> large_;
  Mutex mu_;
  std::map<std::byte*, std::unique_ptr<Slab>> slabs_ HEADRACE_GUARDED_BY(mu_);  // by address
  // By the size of their blocks, those with a free one.
  std::map<size_t, std::map<std::byte*, Slab*>> open_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<Arena> slab_arena() {
  return std::make_shared<SlabArena>(PinFunctions(), heap_arena());
}

std::shared_ptr<Arena> pinned_slab_arena(PinFunctions functions) {
  auto large = pinned_arena(functions);
  return std::make_shared<SlabArena>(std::move(functions), std::move(large));
}

}  // namespace headrace
