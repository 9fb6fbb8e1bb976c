// SPDX-License-Identifier: Apache-2.0
//
// UnitCache: units that many samples share (a row group, a compressed chunk, a run of
// a remote shard), each read and opened once while it is needed.
//
//   absent ──pin()──► reading ──► decoding ──► ready ──last pin dropped──► idle ──evict()──► absent
//
// Idle units are read-ahead that can be revoked: they go, oldest first, when the memory
// is wanted elsewhere.  A unit that is asked for again after that is read again.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/buffer.h"
#include "base/mutex.h"
#include "index/part.h"
#include "index/source.h"

namespace headrace {

// The state of one unit.  Written by the thread that reads or opens it; `opened` and
// `status` are read by others only after ready() was signalled to them.
struct SharedUnit {
  const Source* source = nullptr;
  Unit unit;
  std::string path;
  Buffer stored;
  Buffer opened;
  Status status;
  Bytes bytes() const { return unit.encoding == 0 ? stored.bytes() : opened.bytes(); }
  // What bytes() will come to, as far as the index knows.
  uint64_t expected_bytes() const {
    return unit.decoded_bytes == kWholeFile ? kNominalFileBytes : unit.decoded_bytes;
  }
};

// Thread-safe.
class UnitCache {
 public:
  // Pins the unit until the returned pointer and its copies are gone.
  std::shared_ptr<SharedUnit> pin(const Source& source, const Unit& unit);

  // Calls `ready` once the unit is ready: at once (returns false) when it already is, or
  // has failed, else later.  The first caller for an absent unit gets `must_read` = true and has to
  // read it and call finish().
  bool when_ready(const std::shared_ptr<SharedUnit>& unit, bool& must_read,
                  std::function<void()> ready);

  // The unit is read and opened, or failed: wakes everyone who waits for it.
  void finish(const std::shared_ptr<SharedUnit>& unit);

  // Drops idle units until `bytes` were freed or none is left; returns what was freed.
  uint64_t evict(uint64_t bytes);
  uint64_t bytes() const;   // of all ready units
  uint64_t reread() const;  // units read again after they had been dropped

 private:
  // With the length: runs of two blocks may begin at one place, with a value that both share.
  using Name = std::tuple<const Source*, uint32_t, uint64_t, uint32_t, uint64_t>;
  enum class Stage : uint8_t { kAbsent, kReading, kReady };
  struct Entry {
    std::shared_ptr<SharedUnit> unit;
    Stage stage = Stage::kAbsent;
    uint64_t used = 0;  // clock of the last pin
    std::vector<std::function<void()>> waiting;
  };
  static Name name_of(const SharedUnit& u) {
    return {u.source, u.unit.file, u.unit.offset, u.unit.encoding, u.unit.stored_bytes};
  }

  mutable Mutex mu_;
  std::map<Name, Entry> entries_ HEADRACE_GUARDED_BY(mu_);
  std::map<Name, bool> dropped_ HEADRACE_GUARDED_BY(mu_);
  uint64_t clock_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
  uint64_t reread_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
