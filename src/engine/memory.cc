// SPDX-License-Identifier: Apache-2.0
#include "engine/memory.h"

#include <algorithm>

namespace headrace {

Memory::Memory(uint64_t budget_bytes, size_t sources, bool is_far, bool keeps_runs,
               std::shared_ptr<Arena> column_arena)
    : budget_(budget_bytes),
      pool_(BufferPool::make(budget_bytes / 2, is_far ? slab_arena() : nullptr)),
      column_pool_(column_arena ? BufferPool::make(budget_bytes / 4, std::move(column_arena))
                                : pool_),
      units_(&budget_, pool_, !keeps_runs) {
  for (size_t k = 0; k < sources; ++k) stored_.push_back(std::make_unique<Budget>(~uint64_t{0}));
}

uint64_t Memory::stored() const {
  uint64_t sum = 0;
  for (const auto& source : stored_) sum += source->used();
  return sum;
}

uint64_t Memory::with(uint64_t bytes) const {
  return budget_.used() + std::max(bytes, idle_bytes());
}

uint64_t Memory::idle_bytes() const {
  return pool_->idle_bytes() + (column_pool_ == pool_ ? 0 : column_pool_->idle_bytes());
}

void Memory::trim_idle(uint64_t bytes) {
  const uint64_t freed = pool_->trim(bytes);
  if (column_pool_ != pool_ && freed < bytes) column_pool_->trim(bytes - freed);
}

bool Memory::has_room(uint64_t bytes) {
  const uint64_t limit = budget_.limit();
  const uint64_t wanted = with(bytes);
  if (wanted <= limit) return true;
  // Idle buffers beyond those that may serve this.
  if (const uint64_t idle = idle_bytes(); idle > bytes)
    trim_idle(std::min(idle - bytes, wanted - limit));
  return with(bytes) <= limit;
}

bool Memory::make_room(uint64_t bytes) {
  if (has_room(bytes)) return true;
  const uint64_t limit = budget_.limit();
  // Others may have given back meanwhile.
  if (const uint64_t wanted = with(bytes); wanted > limit) units_.evict(wanted - limit);
  return has_room(bytes);
}

}  // namespace headrace
