// SPDX-License-Identifier: Apache-2.0
#include "engine/read_now.h"

#include "base/guard.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// Counts down to zero; wait() returns then.  Thread-safe.
class Latch {
 public:
  explicit Latch(size_t count) : count_(count) {}
  void down() {
    MutexLock lock(mu_);
    if (--count_ == 0) zero_.notify_all();
  }
  void wait() {
    MutexLock lock(mu_);
    while (count_ > 0) zero_.wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar zero_;
  size_t count_ HEADRACE_GUARDED_BY(mu_);
};

// Reads and opens a unit in this thread, for everyone who waits for it.
void read_unit(const std::shared_ptr<SharedUnit>& unit, UnitCache& units) {
  const Unit& u = unit->unit;
  // Whatever is thrown: those who wait for the unit must hear of it.
  unit->status = guard([&] {
    return unit->source->store().read_at(unit->path, u.offset, u.stored_bytes, unit->stored);
  });
  if (unit->status.ok() && u.encoding != 0)
    unit->status =
        guard([&] { return unit->source->decode_unit(u, unit->stored.bytes(), unit->opened); });
  if (!unit->status.ok()) unit->status = unit->status.at(u.offset).in_file(unit->path);
  if (u.encoding != 0) unit->stored = Buffer();
  units.finish(unit);
}

}  // namespace

void read_now(Gather& gather, UnitCache& units) {
  std::vector<ReadRange>& ranges = gather.ranges();
  Latch latch(gather.ranges_to_read() + gather.shared_units().size());
  for (const auto& unit : gather.shared_units()) {
    bool must_read = false;
    const bool later = units.when_ready(unit, must_read, [&latch] { latch.down(); });
    if (must_read) read_unit(unit, units);
    if (!later) latch.down();
  }
  std::vector<ReadRequest> reads;
  for (ReadRange& range : ranges) {
    if (range.there) continue;
    reads.push_back({.path = range.path,
                     .offset = range.offset,
                     .length = range.length,
                     .into = std::move(range.into()),
                     .done = [&](ReadRequest&& read) {
                       range.status = std::move(read.status);
                       range.into() = std::move(read.into);
                       latch.down();
                     }});
  }
  if (!reads.empty()) ranges.front().source->store().read(reads);
  latch.wait();
}

}  // namespace headrace
