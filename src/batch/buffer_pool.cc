// SPDX-License-Identifier: Apache-2.0
#include "batch/buffer_pool.h"

#include <algorithm>

namespace headrace {

std::shared_ptr<BufferPool> BufferPool::make(uint64_t keep_bytes) {
  return std::shared_ptr<BufferPool>(new BufferPool(keep_bytes));
}

SharedBuffer BufferPool::take(size_t bytes) {
  std::unique_ptr<Buffer> found;
  {
    MutexLock lock(mu_);
    // The tightest fit that wastes less than half; the list is short (tens of buffers).
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      const size_t room = (*it)->capacity();
      if (room < bytes || room / 2 > bytes) continue;
      if (best == idle_.end() || room < (*best)->capacity()) best = it;
    }
    if (best != idle_.end()) {
      found = std::move(*best);
      idle_bytes_ -= found->capacity();
      std::swap(*best, idle_.back());
      idle_.pop_back();
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
  idle_bytes_ += buffer->capacity();
  idle_.push_back(std::move(buffer));
  while (idle_bytes_ > keep_bytes_ && !idle_.empty()) {
    idle_bytes_ -= idle_.front()->capacity();
    freed.push_back(std::move(idle_.front()));
    idle_.erase(idle_.begin());
  }
}

uint64_t BufferPool::idle_bytes() const {
  MutexLock lock(mu_);
  return idle_bytes_;
}

}  // namespace headrace
