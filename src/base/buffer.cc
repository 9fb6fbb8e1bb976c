// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <new>

namespace headrace {

void Buffer::grow(size_t size) {
  const size_t front = lead();
  const size_t step = size >= kHugePageBytes ? kPageBytes : front;
  const size_t room = (size + front + 1 + step - 1) / step * step;
  if (room < size) throw std::bad_alloc();
  const MemoryBlock memory = arena_ ? arena_->allocate(room, front) : allocate_heap(room, front);
  if (data_ != nullptr) free_memory();
  data_ = memory.data + front;
  capacity_ = memory.bytes - front - 1;
}

void Buffer::free_memory() {
  const MemoryBlock memory{data_ - lead(), held_bytes()};
  if (arena_)
    arena_->release(memory);
  else
    release_heap(memory);
}

}  // namespace headrace
