// SPDX-License-Identifier: Apache-2.0
//
// UnitCache: units that many samples share (a row group, a compressed chunk, a run of
// a remote shard), each read and decoded once while it is needed.
//
//   absent ──pin()──► reading ──► decoding ──► ready ──last pin gone──► idle ──evict()──► absent
//
// A run whose values go to the consumer as they are stored is read in parts: each value into memory
// of its own, which is handed over.  What was handed over is gone: who wants it again reads it by
// itself.  So runs that are kept for the next epoch are read as one, and their values copied.
//
// What is handed over is nobody's: `uses` counts the values of the block that lie in a part, each
// of them takes one use, and a part is handed over with the last.  Whoever holds a claim of the
// part, because it will copy out of it, is in the way of that; claims end with the pin.
//
// Idle units can be given up when the memory is wanted elsewhere, each in constant time: runs that
// are used up first, then what has been idle longest.  A unit that is asked for again after that is
// read again; of a run that was not used up, the values that are left are read by themselves.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/budget.h"
#include "base/mutex.h"
#include "batch/buffer_pool.h"
#include "engine/work_count.h"
#include "index/part.h"
#include "index/source.h"

namespace headrace {

// What was taken of a run: of so many of its samples, and the bytes of their values.
struct TakenOfRun {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t of_samples = 0;  // that it has; 0: not known
};

// A value of a run, or several small ones, in memory of its own.
struct RunPart {
  uint64_t begin = 0;  // within the run
  uint64_t length = 0;
  uint32_t uses = 0;    // values of samples of the block that lie in it
  SharedBuffer memory;  // null: not read yet, or handed over

 private:
  friend class UnitCache;
  // Under the cache's lock.
  uint32_t claims_ = 0;  // by those who will read it or have it handed over
  bool is_gone_ = false;
};

// The state of one unit.  Written by the thread that reads or decodes it; what it holds is read
// by others only after they heard that it is ready.
struct SharedUnit {
  const Source* source = nullptr;
  Unit unit;
  std::string path;
  SharedBuffer stored;
  SharedBuffer decoded;
  std::vector<RunPart> parts;  // instead of `stored`, by their place; fixed before it is read
  Status status;
  Grant memory;                // of what it holds, or is thought to
  Grant reading;               // of what of its source is under way
  WorkCount::Token under_way;  // while it is read and decoded by an engine

  Bytes bytes() const {
    const SharedBuffer& held = unit.encoding == 0 ? stored : decoded;
    return held ? held->bytes() : Bytes();
  }
  // All that it holds, once it is ready.
  uint64_t held_bytes() const {
    uint64_t sum = bytes().size();
    for (const RunPart& part : parts) sum += part.memory ? part.length : 0;
    return sum;
  }
  // What that will come to, as far as the index knows.
  uint64_t expected_bytes() const {
    return unit.decoded_bytes == kWholeFile ? kNominalFileBytes : unit.decoded_bytes;
  }
  uint64_t stored_bytes() const {
    return unit.stored_bytes == kWholeFile ? kNominalFileBytes : unit.stored_bytes;
  }
  // What is held while it is decoded: stored and decoded bytes.
  uint64_t most_bytes() const {
    return expected_bytes() + (unit.encoding == 0 ? 0 : stored_bytes());
  }

 private:
  friend class UnitCache;
  bool is_used_up() const { return taken_.of_samples > 0 && taken_.samples >= taken_.of_samples; }
  bool is_used_in_part() const { return taken_.samples > 0 && !is_used_up(); }

  // Under the cache's lock.
  size_t pins_ = 0;
  TakenOfRun taken_;            // in this epoch
  bool parts_are_set_ = false;  // somebody relies on them, or on there being none
};

using UnitPointer = std::shared_ptr<SharedUnit>;

class UnitCache;

// Keeps a unit from being evicted, and the parts that it claimed from being handed over to others.
// Movable.
class UnitPin {
 public:
  static constexpr uint32_t kNoPart = ~uint32_t{0}, kWholeRun = kNoPart - 1;

  UnitPin() = default;
  UnitPin(UnitPin&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)),
        unit_(std::move(other.unit_)),
        claims_(std::move(other.claims_)) {}
  UnitPin& operator=(UnitPin&& other) noexcept;
  ~UnitPin();
  const UnitPointer& unit() const { return unit_; }
  SharedUnit* operator->() const { return unit_.get(); }

  // The part that holds this place of a run.  kNoPart where none does, or it was handed over.  Of a
  // run that is read as one: kWholeRun.
  uint32_t claim(uint64_t begin, uint64_t length);
  // The memory of a part that it claimed, if nobody else wants it.  Null: it has to be copied.
  SharedBuffer hand_over(uint32_t part) const;

 private:
  friend class UnitCache;
  UnitPin(UnitCache* cache, UnitPointer unit) : cache_(cache), unit_(std::move(unit)) {}
  UnitCache* cache_ = nullptr;
  UnitPointer unit_;
  std::vector<uint32_t> claims_;
};

// Thread-safe.  Outlives its pins.
class UnitCache {
 public:
  // Counts what the units hold against `budget`, where there is one; takes memory from `pool`.
  // Runs of which every sample was taken are kept for the next epoch, unless `drops_used_runs`.
  explicit UnitCache(Budget* budget = nullptr, std::shared_ptr<BufferPool> pool = nullptr,
                     bool drops_used_runs = false);

  UnitPin pin(const Source& source, const Unit& unit) HEADRACE_EXCLUDES(mu_);

  // Of a run: somebody takes so many samples of it, which no other will take in this epoch.
  void take(const UnitPointer& run, const TakenOfRun& taken) HEADRACE_EXCLUDES(mu_);
  // Likewise, but they are read without their run, which may be read later for the others.
  void take_singly(const Source& source, const Unit& run, const TakenOfRun& taken)
      HEADRACE_EXCLUDES(mu_);

  // Whether somebody may still say in which parts the run is read: nobody reads it or has claimed
  // some of it, and no other epoch will find it here.
  bool may_set_parts(const UnitPointer& run) const HEADRACE_EXCLUDES(mu_);
  // Likewise; else nothing happens.
  void set_parts(const UnitPointer& run, std::vector<RunPart> parts) HEADRACE_EXCLUDES(mu_);

  // Whether a value of so many bytes is better read without its run: it was dropped before all of
  // it was taken, and this is some of the rest.
  bool take_rest(const Source& source, const Unit& run, uint64_t bytes) HEADRACE_EXCLUDES(mu_);

  // Calls `ready` once the unit is ready: at once (returns false) when it already is, or
  // has failed, else later.  The first caller for an absent unit gets `must_read` = true and has to
  // read it into unit->stored, decode it and call finish().
  bool when_ready(const UnitPointer& unit, bool& must_read, std::function<void()> ready)
      HEADRACE_EXCLUDES(mu_);
  // Whether nobody reads it yet, nor has.
  bool is_absent(const UnitPointer& unit) const HEADRACE_EXCLUDES(mu_);

  // The unit is read and decoded, or failed: wakes everyone who waits for it.
  void finish(const UnitPointer& unit) HEADRACE_EXCLUDES(mu_);

  // Drops idle units until `bytes` were freed or none is left; returns what was freed.
  uint64_t evict(uint64_t bytes) HEADRACE_EXCLUDES(mu_);
  uint64_t bytes() const HEADRACE_EXCLUDES(mu_);   // of all ready units
  uint64_t reread() const HEADRACE_EXCLUDES(mu_);  // units read again after they had been dropped

  // Memory of so many bytes for what a unit holds.
  SharedBuffer memory(uint64_t bytes) { return pool_->take(bytes); }

 private:
  friend class UnitPin;
  // With the length: runs of two blocks may begin at one place, with a value that both share.
  struct Name {
    const Source* source;
    uint32_t file;
    uint32_t encoding;
    uint64_t offset;
    uint64_t stored_bytes;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    size_t operator()(const Name& name) const;
  };
  enum class State : uint8_t { kAbsent, kReading, kReady };
  struct Entry {
    UnitPointer unit;
    State state = State::kAbsent;
    std::list<Name>::iterator idle_place;  // where the state is ready and there is no pin
    std::vector<std::function<void()>> waiting;
  };
  static Name name_of(const SharedUnit& u) {
    return {u.source, u.unit.file, u.unit.encoding, u.unit.offset, u.unit.stored_bytes};
  }
  void unpin(const UnitPin& pin) HEADRACE_EXCLUDES(mu_);
  uint32_t claim(SharedUnit& run, uint64_t begin, uint64_t length) HEADRACE_EXCLUDES(mu_);
  SharedBuffer hand_over(SharedUnit& run, uint32_t part) HEADRACE_EXCLUDES(mu_);
  // Nobody pins it and it is ready: it is kept, or dropped.
  void make_idle(Entry& entry) HEADRACE_REQUIRES(mu_);
  static void add(TakenOfRun& to, const TakenOfRun& taken);
  Entry* find(const UnitPointer& unit) HEADRACE_REQUIRES(mu_);
  const Entry* find(const UnitPointer& unit) const HEADRACE_REQUIRES(mu_);
  bool has_no_parts_yet(const UnitPointer& run) const HEADRACE_REQUIRES(mu_);

  Budget* const budget_;
  const std::shared_ptr<BufferPool> pool_;
  const bool drops_used_runs_;
  mutable Mutex mu_;
  std::unordered_map<Name, Entry, NameHash> entries_ HEADRACE_GUARDED_BY(mu_);
  std::list<Name> idle_ HEADRACE_GUARDED_BY(mu_);  // what goes first is at the front
  // Names of what was dropped, for the statistics: bounded, a hint.
  std::unordered_set<size_t> dropped_ HEADRACE_GUARDED_BY(mu_);
  // What is left of runs that were dropped early, in bytes, by the hash of their names: two that
  // share one are read otherwise than is best, no more.
  std::unordered_map<size_t, uint64_t> rests_ HEADRACE_GUARDED_BY(mu_);
  // What was taken of runs that are not here yet: a hint as well.
  std::unordered_map<size_t, TakenOfRun> taken_singly_ HEADRACE_GUARDED_BY(mu_);
  uint64_t bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t reread_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
