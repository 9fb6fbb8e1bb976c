// SPDX-License-Identifier: Apache-2.0
#include "engine/unit_cache.h"

namespace headrace {

std::shared_ptr<SharedUnit> UnitCache::pin(const Source& source, const Unit& unit) {
  MutexLock lock(mu_);
  Entry& entry = entries_[{&source, unit.file, unit.offset, unit.encoding, unit.stored_bytes}];
  entry.used = ++clock_;
  if (!entry.unit) {
    entry.unit = std::make_shared<SharedUnit>();
    entry.unit->source = &source;
    entry.unit->unit = unit;
    entry.unit->path = source.file_path(unit.file);
  }
  return entry.unit;
}

bool UnitCache::when_ready(const std::shared_ptr<SharedUnit>& unit, bool& must_read,
                           std::function<void()> ready) {
  MutexLock lock(mu_);
  must_read = false;
  const auto found = entries_.find(name_of(*unit));
  // It failed after it was pinned: its holders look at its status, and so nobody may write to it.
  if (found == entries_.end() || found->second.unit != unit) return false;
  Entry& entry = found->second;
  if (entry.stage == Stage::kReady) return false;
  entry.waiting.push_back(std::move(ready));
  if (entry.stage == Stage::kAbsent) {
    entry.stage = Stage::kReading;
    must_read = true;
    if (dropped_.erase(name_of(*unit)) > 0) ++reread_;
  }
  return true;
}

void UnitCache::finish(const std::shared_ptr<SharedUnit>& unit) {
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(mu_);
    const auto it = entries_.find(name_of(*unit));
    Entry& entry = it->second;
    waiting.swap(entry.waiting);
    if (unit->status.ok()) {
      entry.stage = Stage::kReady;
      bytes_ += unit->bytes().size();
    } else {
      entries_.erase(it);  // those who wait hold it and see the failure; the next one tries again
    }
  }
  for (const auto& ready : waiting) ready();
}

uint64_t UnitCache::evict(uint64_t bytes) {
  MutexLock lock(mu_);
  uint64_t freed = 0;
  while (freed < bytes) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      const bool idle = it->second.stage == Stage::kReady && it->second.unit.use_count() == 1;
      if (idle && (oldest == entries_.end() || it->second.used < oldest->second.used)) oldest = it;
    }
    if (oldest == entries_.end()) break;
    const uint64_t size = oldest->second.unit->bytes().size();
    freed += size;
    bytes_ -= size;
    // The memory of what was dropped is a hint for the statistics: bounded, oldest forgotten first.
    if (dropped_.size() >= 65536) dropped_.erase(dropped_.begin());
    dropped_[oldest->first] = true;
    entries_.erase(oldest);
  }
  return freed;
}

uint64_t UnitCache::bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

uint64_t UnitCache::reread() const {
  MutexLock lock(mu_);
  return reread_;
}

}  // namespace headrace
