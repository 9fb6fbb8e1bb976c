// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory that goes round.  A buffer comes back when its last owner lets
// go (often Python, much later), and is handed out again without a page fault.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/mutex.h"

namespace headrace {

using SharedBuffer = std::shared_ptr<Buffer>;

// Thread-safe.  Buffers may outlive the pool: they are then simply freed.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Keeps at most `keep_bytes` of idle memory.  Without an arena: the heap.
  static std::shared_ptr<BufferPool> make(uint64_t keep_bytes,
                                          std::shared_ptr<Arena> arena = nullptr);

  // A buffer of exactly `bytes`, contents undefined.  Throws std::bad_alloc.
  SharedBuffer take(size_t bytes);

  // All memory of the buffers that wait (Buffer::held_bytes).
  uint64_t idle_bytes() const;
  // Frees idle buffers, until `bytes` are freed or none is left.  Returns what was freed.
  uint64_t trim(uint64_t bytes);

 private:
  using Buffers = std::vector<std::unique_ptr<Buffer>>;

  BufferPool(uint64_t keep_bytes, std::shared_ptr<Arena> arena)
      : keep_bytes_(keep_bytes), arena_(std::move(arena)) {}
  std::unique_ptr<Buffer> find(size_t size_class) HEADRACE_REQUIRES(mu_);
  void give_back(std::unique_ptr<Buffer> buffer);
  void drop_one(Buffers& dropped) HEADRACE_REQUIRES(mu_);

  const uint64_t keep_bytes_;
  const std::shared_ptr<Arena> arena_;
  mutable Mutex mu_;
  // By class of size, four to a doubling; the one that came back last is warm and goes first.
  std::array<Buffers, 256> idle_ HEADRACE_GUARDED_BY(mu_);
  uint64_t idle_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
