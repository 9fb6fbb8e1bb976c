// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: memory that goes round.  A buffer comes back when its last owner lets
// go (often Python, much later), and is handed out again without a page fault.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/mutex.h"

namespace headrace {

using SharedBuffer = std::shared_ptr<Buffer>;

// Thread-safe.  Buffers may outlive the pool: they are then simply freed.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Keeps at most `keep_bytes` of idle memory.
  static std::shared_ptr<BufferPool> make(uint64_t keep_bytes);

  // A buffer of exactly `bytes`, contents undefined.
  SharedBuffer take(size_t bytes);

  uint64_t idle_bytes() const;

 private:
  explicit BufferPool(uint64_t keep_bytes) : keep_bytes_(keep_bytes) {}
  std::unique_ptr<Buffer> find(size_t size_class) HEADRACE_REQUIRES(mu_);
  void give_back(std::unique_ptr<Buffer> buffer);

  const uint64_t keep_bytes_;
  mutable Mutex mu_;
  // By class of size, four to a doubling; the one that came back last is warm and goes first.
  std::array<std::vector<std::unique_ptr<Buffer>>, 256> idle_ HEADRACE_GUARDED_BY(mu_);
  uint64_t idle_bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
