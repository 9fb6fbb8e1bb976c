// SPDX-License-Identifier: Apache-2.0
#include "batch/buffer_pool.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr size_t kSteps = 4;  // classes to a doubling

// The class whose buffers all hold `bytes`: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 … times 16 bytes.
size_t class_of(size_t bytes) {
  const size_t lines = std::max<size_t>((bytes + 15) / 16, kSteps);
  const auto doubling = static_cast<size_t>(std::bit_width(lines)) - 3;
  const size_t step = size_t{1} << doubling;
  return doubling * kSteps + (lines + step - 1) / step - kSteps;
}

size_t bytes_of(size_t size_class) {
  return ((size_class % kSteps + kSteps) << (size_class / kSteps)) * 16;
}

// The class that a buffer of this capacity serves.
size_t class_held(size_t capacity) {
  const size_t up = class_of(capacity);
  return bytes_of(up) <= capacity || up == 0 ? up : up - 1;
}

}  // namespace

std::shared_ptr<BufferPool> BufferPool::make(uint64_t keep_bytes, std::shared_ptr<Arena> arena) {
  return std::shared_ptr<BufferPool>(new BufferPool(keep_bytes, std::move(arena)));
}

// One of the class, or of those that waste less than half.
std::unique_ptr<Buffer> BufferPool::find(size_t size_class) {
  const size_t end = std::min(size_class + kSteps, idle_.size());
  for (size_t k = size_class; k < end; ++k) {
    if (idle_[k].empty()) continue;
    std::unique_ptr<Buffer> found = std::move(idle_[k].back());
    idle_[k].pop_back();
    idle_bytes_ -= found->held_bytes();
    return found;
  }
  return nullptr;
}

SharedBuffer BufferPool::take(size_t bytes) {
  const size_t size_class = class_of(bytes);
  std::unique_ptr<Buffer> found;
  {
    MutexLock lock(mu_);
    found = find(size_class);
  }
  if (!found) {
    found = std::make_unique<Buffer>(arena_);
    found->resize(bytes_of(size_class));  // what is not touched costs nothing
  }
  found->resize(bytes);
  return SharedBuffer(found.release(), [pool = weak_from_this()](Buffer* b) {
    std::unique_ptr<Buffer> owned(b);
    if (const auto alive = pool.lock()) alive->give_back(std::move(owned));
  });
}

void BufferPool::give_back(std::unique_ptr<Buffer> buffer) {
  // Its owner moved its memory away, or other memory in.
  if (buffer->capacity() == 0 || buffer->arena() != arena_) return;
  Buffers dropped;  // freed after the lock
  const size_t size_class = class_held(buffer->capacity());
  MutexLock lock(mu_);
  idle_bytes_ += buffer->held_bytes();
  idle_[size_class].push_back(std::move(buffer));
  while (idle_bytes_ > keep_bytes_) drop_one(dropped);
}

uint64_t BufferPool::trim(uint64_t bytes) {
  Buffers dropped;  // freed after the lock
  MutexLock lock(mu_);
  const uint64_t before = idle_bytes_;
  while (idle_bytes_ > 0 && before - idle_bytes_ < bytes) drop_one(dropped);
  return before - idle_bytes_;
}

// Of the class that holds most memory: sizes that are no longer asked for go first.
void BufferPool::drop_one(Buffers& dropped) {
  const auto weight = [](const Buffers& list) {
    return list.empty() ? 0 : list.size() * list.front()->held_bytes();
  };
  Buffers& heaviest =
      *std::max_element(idle_.begin(), idle_.end(),
                        [&](const Buffers& a, const Buffers& b) { return weight(a) < weight(b); });
  idle_bytes_ -= heaviest.back()->held_bytes();
  dropped.push_back(std::move(heaviest.back()));
  heaviest.pop_back();
}

uint64_t BufferPool::idle_bytes() const {
  MutexLock lock(mu_);
  return idle_bytes_;
}

}  // namespace headrace
