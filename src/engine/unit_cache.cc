// SPDX-License-Identifier: Apache-2.0
#include "engine/unit_cache.h"

#include <algorithm>

#include "base/rng.h"

namespace headrace {
namespace {

constexpr size_t kRememberDropped = 65536;

}  // namespace

UnitPin& UnitPin::operator=(UnitPin&& other) noexcept {
  if (this == &other) return *this;
  if (cache_ != nullptr) cache_->unpin(*this);
  cache_ = std::exchange(other.cache_, nullptr);
  unit_ = std::move(other.unit_);
  claims_ = std::move(other.claims_);
  return *this;
}

UnitPin::~UnitPin() {
  if (cache_ != nullptr) cache_->unpin(*this);
}

uint32_t UnitPin::claim(uint64_t begin, uint64_t length) {
  const uint32_t part = cache_->claim(*unit_, begin, length);
  if (part < kWholeRun) claims_.push_back(part);
  return part;
}

SharedBuffer UnitPin::hand_over(uint32_t part) const {
  return cache_->hand_over(*unit_, part);
}

UnitCache::UnitCache(Budget* budget, std::shared_ptr<BufferPool> pool, bool drops_used_runs)
    : budget_(budget),
      pool_(pool ? std::move(pool) : BufferPool::make(0)),
      drops_used_runs_(drops_used_runs) {}

size_t UnitCache::NameHash::operator()(const Name& name) const {
  return static_cast<size_t>(Key(reinterpret_cast<uintptr_t>(name.source))
                                 .with((uint64_t{name.file} << 32) | name.encoding)
                                 .with(name.offset)
                                 .with(name.stored_bytes)
                                 .value());
}

UnitPin UnitCache::pin(const Source& source, const Unit& unit) {
  MutexLock lock(mu_);
  const Name name{&source, unit.file, unit.encoding, unit.offset, unit.stored_bytes};
  Entry& entry = entries_[name];
  if (!entry.unit) {
    entry.unit = std::make_shared<SharedUnit>();
    entry.unit->source = &source;
    entry.unit->unit = unit;
    entry.unit->path = source.file_path(unit.file);
    if (const auto before = taken_singly_.extract(NameHash()(name)); !before.empty())
      entry.unit->taken_ = before.mapped();
  }
  if (entry.unit->pins_++ == 0 && entry.state == State::kReady) idle_.erase(entry.idle_place);
  return UnitPin(this, entry.unit);
}

// Null when it failed after it was pinned: the cache has forgotten it.
const UnitCache::Entry* UnitCache::find(const UnitPointer& unit) const {
  const auto found = entries_.find(name_of(*unit));
  return found != entries_.end() && found->second.unit == unit ? &found->second : nullptr;
}

UnitCache::Entry* UnitCache::find(const UnitPointer& unit) {
  const auto found = entries_.find(name_of(*unit));
  return found != entries_.end() && found->second.unit == unit ? &found->second : nullptr;
}

void UnitCache::unpin(const UnitPin& pin) {
  const UnitPointer& unit = pin.unit_;
  MutexLock lock(mu_);
  for (const uint32_t part : pin.claims_) --unit->parts[part].claims_;
  if (--unit->pins_ > 0) return;
  Entry* entry = find(unit);
  if (entry == nullptr) return;
  if (entry->state == State::kReady)
    make_idle(*entry);
  else if (entry->state == State::kAbsent)
    entries_.erase(name_of(*unit));
}

void UnitCache::make_idle(Entry& entry) {
  if (drops_used_runs_ && entry.unit->is_used_up()) {
    bytes_ -= entry.unit->held_bytes();
    entries_.erase(name_of(*entry.unit));  // the caller's pointer is the last
    return;
  }
  const auto place = entry.unit->is_used_up() ? idle_.begin() : idle_.end();
  entry.idle_place = idle_.insert(place, name_of(*entry.unit));
}

void UnitCache::add(TakenOfRun& to, const TakenOfRun& taken) {
  if (to.of_samples > 0 && to.samples >= to.of_samples) to = {};  // another epoch
  to.samples += taken.samples;
  to.bytes += taken.bytes;
  to.of_samples = taken.of_samples;
}

void UnitCache::take(const UnitPointer& run, const TakenOfRun& taken) {
  MutexLock lock(mu_);
  add(run->taken_, taken);
}

void UnitCache::take_singly(const Source& source, const Unit& run, const TakenOfRun& taken) {
  const Name name{&source, run.file, run.encoding, run.offset, run.stored_bytes};
  MutexLock lock(mu_);
  if (const auto found = entries_.find(name); found != entries_.end()) {
    add(found->second.unit->taken_, taken);
    return;
  }
  if (taken_singly_.size() >= kRememberDropped) taken_singly_.clear();
  add(taken_singly_[NameHash()(name)], taken);
}

bool UnitCache::has_no_parts_yet(const UnitPointer& run) const {
  const Entry* entry = find(run);
  return entry != nullptr && entry->state == State::kAbsent && !run->parts_are_set_;
}

bool UnitCache::may_set_parts(const UnitPointer& run) const {
  if (!drops_used_runs_) return false;
  MutexLock lock(mu_);
  return has_no_parts_yet(run);
}

void UnitCache::set_parts(const UnitPointer& run, std::vector<RunPart> parts) {
  MutexLock lock(mu_);
  if (!drops_used_runs_ || !has_no_parts_yet(run)) return;
  run->parts = std::move(parts);
  run->parts_are_set_ = true;
}

uint32_t UnitCache::claim(SharedUnit& run, uint64_t begin, uint64_t length) {
  MutexLock lock(mu_);
  run.parts_are_set_ = true;
  if (run.parts.empty()) return UnitPin::kWholeRun;
  auto part =
      std::upper_bound(run.parts.begin(), run.parts.end(), begin,
                       [](uint64_t place, const RunPart& other) { return place < other.begin; });
  if (part == run.parts.begin()) return UnitPin::kNoPart;
  --part;
  const uint64_t within = begin - part->begin;
  if (part->is_gone_ || within > part->length || length > part->length - within)
    return UnitPin::kNoPart;
  ++part->claims_;
  return static_cast<uint32_t>(part - run.parts.begin());
}

SharedBuffer UnitCache::hand_over(SharedUnit& run, uint32_t number) {
  Grant given_back;  // after the lock
  MutexLock lock(mu_);
  RunPart& part = run.parts[number];
  if (!part.memory) return nullptr;
  // Others of this block have the same value, or somebody reads it now.
  if (part.uses > 0) --part.uses;
  if (part.uses > 0 || part.claims_ > 1) return nullptr;
  part.is_gone_ = true;
  bytes_ -= part.length;
  given_back = run.memory.split(part.length);
  return std::move(part.memory);
}

bool UnitCache::take_rest(const Source& source, const Unit& run, uint64_t bytes) {
  const Name name{&source, run.file, run.encoding, run.offset, run.stored_bytes};
  const size_t hash = NameHash()(name);
  MutexLock lock(mu_);
  const auto rest = rests_.find(hash);
  if (rest == rests_.end()) return false;
  if (rest->second <= bytes)
    rests_.erase(rest);  // the next one is of another epoch
  else
    rest->second -= bytes;
  return true;
}

bool UnitCache::is_absent(const UnitPointer& unit) const {
  MutexLock lock(mu_);
  const Entry* entry = find(unit);
  return entry != nullptr && entry->state == State::kAbsent;
}

bool UnitCache::when_ready(const UnitPointer& unit, bool& must_read, std::function<void()> ready) {
  MutexLock lock(mu_);
  must_read = false;
  Entry* entry = find(unit);
  // It failed after it was pinned: its holders look at its status, and so nobody may write to it.
  if (entry == nullptr || entry->state == State::kReady) return false;
  entry->waiting.push_back(std::move(ready));
  if (entry->state == State::kAbsent) {
    entry->state = State::kReading;
    must_read = true;
    if (budget_ != nullptr) unit->memory = budget_->take(unit->most_bytes());
    if (dropped_.erase(NameHash()(name_of(*unit))) > 0) ++reread_;
  }
  return true;
}

void UnitCache::finish(const UnitPointer& unit) {
  WorkCount::Token work;  // ends last: those who wait may hold the last of a step
  std::vector<std::function<void()>> waiting;
  if (unit->unit.encoding != 0) unit->stored.reset();
  // What it was thought to take was counted; now what it takes.
  if (budget_ != nullptr) unit->memory.resize(unit->status.ok() ? unit->held_bytes() : 0);
  {
    MutexLock lock(mu_);
    Entry* entry = find(unit);
    waiting.swap(entry->waiting);
    if (unit->status.ok()) {
      entry->state = State::kReady;
      bytes_ += unit->held_bytes();
      if (unit->pins_ == 0) make_idle(*entry);
    } else {
      // Those who wait hold it and see the failure; the next one tries again.
      entries_.erase(name_of(*unit));
    }
  }
  work = std::move(unit->under_way);
  for (const auto& ready : waiting) ready();
}

uint64_t UnitCache::evict(uint64_t bytes) {
  std::vector<UnitPointer> evicted;  // let go after the lock
  MutexLock lock(mu_);
  uint64_t freed = 0;
  while (freed < bytes && !idle_.empty()) {
    const auto oldest = entries_.find(idle_.front());
    const SharedUnit& unit = *oldest->second.unit;
    idle_.pop_front();
    if (rests_.size() >= kRememberDropped) rests_.clear();
    if (unit.is_used_in_part())
      rests_[NameHash()(oldest->first)] =
          unit.unit.stored_bytes - std::min(unit.unit.stored_bytes, unit.taken_.bytes);
    freed += oldest->second.unit->held_bytes();
    if (dropped_.size() >= kRememberDropped) dropped_.clear();
    dropped_.insert(NameHash()(oldest->first));
    evicted.push_back(std::move(oldest->second.unit));
    entries_.erase(oldest);
  }
  bytes_ -= freed;
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
