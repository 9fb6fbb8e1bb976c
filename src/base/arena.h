// SPDX-License-Identifier: Apache-2.0
//
// Arena: where the bytes of buffers come from.  A buffer keeps its arena alive, so an arena may be
// let go of while memory of it is in use.
//
//   heap     malloc; from 2 MiB on huge pages are asked for
//   page     data begin at a multiple of 4096, as O_DIRECT wants
//   slab     blocks of equal size in slabs of huge pages, for very many of 100 KB to some MiB
//   shared   memfd segments: another process maps the descriptor and finds the data at an offset
//   pinned   locked by functions that the caller gives (those of the GPU's driver); also in slabs,
//            each locked as a whole
//
//   HEADRACE_ASSIGN(const std::shared_ptr<Arena> arena, shared_arena(uint64_t{64} << 20));
//   Buffer buffer(arena);
//   buffer.resize(1000);
//   const std::optional<SharedName> name = arena->name_of(buffer.data());
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

inline constexpr size_t kAlignment = 64;  // a cache line, and what JAX wants for sharing memory
inline constexpr size_t kPageBytes = 4096;
// From here on huge pages are asked for: fresh 4 KiB pages fill at 2.0 GB/s, huge ones at 5.5.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

enum class ArenaKind : uint8_t { kHeap, kPage, kShared, kPinned };

// What an arena handed out; goes back to it as it came.
struct MemoryBlock {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// Shared memory as another process finds it: it gets the descriptor (over a socket, or by
// inheritance), maps all of it once, and looks at `offset`.
struct SharedName {
  int fd = -1;                 // of this process; the arena closes it
  uint64_t offset = 0;         // in the segment
  uint64_t segment = 0;        // a number that the arena gives to no other segment
  uint64_t segment_bytes = 0;  // how much there is to map
};

// Thread-safe.
class Arena {
 public:
  virtual ~Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // At least `bytes` of undefined content.  `alignment` is a power of two, at most kPageBytes.
  // Throws std::bad_alloc.
  virtual MemoryBlock allocate(size_t bytes, size_t alignment) = 0;
  virtual void release(MemoryBlock memory) = 0;

  // Of memory of a shared arena; else nothing.
  virtual std::optional<SharedName> name_of(const std::byte* at) const;
  virtual ArenaKind kind() const = 0;
  // To which multiple the data of a buffer begin.
  virtual size_t alignment() const { return kAlignment; }

 protected:
  Arena() = default;
};

// One for the process.  A buffer without an arena takes its bytes here, by the functions below.
std::shared_ptr<Arena> heap_arena();
std::shared_ptr<Arena> page_arena();
// One a call.  Empty slabs stay with the process for the next one, at most 1 GiB of them.
std::shared_ptr<Arena> slab_arena();

// Allocations share segments of so many bytes; a larger one gets a segment to itself.  A forked
// child reads and writes what it inherited, allocates from segments of its own, and cannot free
// what is its parent's.
Result<std::shared_ptr<Arena>> shared_arena(uint64_t segment_bytes);

// `lock` is called once for each allocation, `unlock` once before its memory is freed, never in a
// forked child.  Locking is slow: put a BufferPool in front.
struct PinFunctions {
  std::function<bool(MutableBytes)> lock;  // false: it failed, which is an allocation that failed
  std::function<void(MutableBytes)> unlock;
};
std::shared_ptr<Arena> pinned_arena(PinFunctions functions);
// The same in slabs: `lock` is called for each slab, and for what is larger than a slab's blocks.
std::shared_ptr<Arena> pinned_slab_arena(PinFunctions functions);

// What heap_arena() does.
MemoryBlock allocate_heap(size_t bytes, size_t alignment);
void release_heap(MemoryBlock memory);

}  // namespace headrace
