// SPDX-License-Identifier: Apache-2.0
#include "batch/buffer_pool.h"

#include <vector>

namespace headrace {
namespace {

constexpr size_t kSmall = 4096;  // less than a page: the allocator keeps it as well as a pool does

}  // namespace

std::shared_ptr<BufferPool> BufferPool::make(uint64_t keep_bytes) {
  return std::shared_ptr<BufferPool>(new BufferPool(keep_bytes));
}

SharedBuffer BufferPool::take(size_t bytes) {
  if (bytes < kSmall) return std::make_shared<Buffer>(bytes);
  std::unique_ptr<Buffer> found;
  {
    MutexLock lock(mu_);
    // The tightest fit that wastes less than half.
    const auto best = sizes_.lower_bound({bytes, 0});
    if (best != sizes_.end() && best->first / 2 <= bytes) {
      const auto it = idle_.find(best->second);
      found = std::move(it->second);
      idle_bytes_ -= found->capacity();
      idle_.erase(it);
      sizes_.erase(best);
    }
  }
  if (!found) found = std::make_unique<Buffer>();
  found->resize(bytes);
  return SharedBuffer(found.release(), [pool = weak_from_this()](Buffer* b) {
    std::unique_ptr<Buffer> owned(b);
    if (const auto alive = pool.lock()) alive->give_back(std::move(owned));
  });
}

void BufferPool::give_back(std::unique_ptr<Buffer> buffer) {
  std::vector<std::unique_ptr<Buffer>> freed;  // let go after the lock
  MutexLock lock(mu_);
  const uint64_t turn = next_turn_++;
  idle_bytes_ += buffer->capacity();
  sizes_.emplace(buffer->capacity(), turn);
  idle_.emplace(turn, std::move(buffer));
  while (idle_bytes_ > keep_bytes_ && !idle_.empty()) {
    const auto oldest = idle_.begin();
    idle_bytes_ -= oldest->second->capacity();
    sizes_.erase({oldest->second->capacity(), oldest->first});
    freed.push_back(std::move(oldest->second));
    idle_.erase(oldest);
  }
}

uint64_t BufferPool::idle_bytes() const {
  MutexLock lock(mu_);
  return idle_bytes_;
}

}  // namespace headrace
