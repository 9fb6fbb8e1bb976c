// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory that goes round.  What a buffer held comes back when its last owner lets go
// (often Python, much later), and is handed out again without a page fault.
//
//   take(bytes)    a buffer with its memory
//   take_later()   a buffer that gets its memory when it is first resized.  For reads: thousands
//   may
//                  be under way, and what they are given when their bytes come is what was let go
//                  last, which lies in the processor's caches
#pragma once

#include <memory>

#include "base/buffer.h"

namespace headrace {

using SharedBuffer = std::shared_ptr<Buffer>;

// Thread-safe.  Buffers may outlive the pool: they are then simply freed.
class BufferPool {
 public:
  // Keeps at most `keep_bytes` of idle memory.  Without an arena: the heap.
  static std::shared_ptr<BufferPool> make(uint64_t keep_bytes,
                                          std::shared_ptr<Arena> arena = nullptr);
  ~BufferPool();

  // A buffer of exactly `bytes`, contents undefined.  Throws std::bad_alloc.
  SharedBuffer take(size_t bytes);
  SharedBuffer take_later();

  // Whether a buffer of so many bytes would be made of memory that was used before.
  bool has_idle(size_t bytes) const;
  // All memory that waits to be used again.
  uint64_t idle_bytes() const;
  // Frees idle memory, until `bytes` are freed or none is left.  Returns what was freed.
  uint64_t trim(uint64_t bytes);

 private:
  class Recycler;
  explicit BufferPool(std::shared_ptr<Recycler> recycler);

  const std::shared_ptr<Recycler> recycler_;  // the arena of all its buffers
};

}  // namespace headrace
