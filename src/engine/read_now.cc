// SPDX-License-Identifier: Apache-2.0
#include "engine/read_now.h"

#include <algorithm>

#include "base/guard.h"
#include "base/mutex.h"
#include "storage/routed.h"

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

// From the first part to the last, as Reader does.
Status read_parts(SharedUnit& run, UnitCache& units) {
  const uint64_t first = run.parts.front().begin;
  const uint64_t length = run.parts.back().begin + run.parts.back().length - first;
  Buffer all;
  HEADRACE_TRY(run.source->store().read_at(run.path, run.unit.offset + first, length, all));
  for (RunPart& part : run.parts) {
    part.memory = units.memory(part.length);
    const Bytes from = all.bytes().subspan(part.begin - first, part.length);
    std::copy(from.begin(), from.end(), part.memory->data());
  }
  return {};
}

// Reads and decodes a unit in this thread, for everyone who waits for it.
void read_unit(const UnitPointer& unit, UnitCache& units) {
  const Unit& u = unit->unit;
  // Whatever is thrown: those who wait for the unit must hear of it.
  unit->status = guard([&]() -> Status {
    if (!unit->parts.empty()) return read_parts(*unit, units);
    unit->stored = units.memory(u.stored_bytes == kWholeFile ? 0 : u.stored_bytes);
    return unit->source->store().read_at(unit->path, u.offset, u.stored_bytes, *unit->stored);
  });
  decode_unit(*unit, units);
  units.finish(unit);
}

}  // namespace

void decode_unit(SharedUnit& unit, UnitCache& units) {
  if (unit.status.ok() && unit.unit.encoding != 0)
    unit.status = guard([&]() -> Status {
      unit.decoded = units.memory(unit.expected_bytes());
      return unit.source->decode_unit(unit.unit, unit.stored->bytes(), *unit.decoded);
    });
  if (!unit.status.ok())
    unit.status = unit.status.at(unit.unit.offset).in_file(plain_path(unit.path));
}

void read_by_store(std::span<ReadRequest> reads, std::span<const Store* const> stores) {
  for (size_t begin = 0, end = 0; begin < reads.size(); begin = end) {
    while (end < reads.size() && stores[end] == stores[begin]) ++end;
    stores[begin]->read(reads.subspan(begin, end - begin));
  }
}

void read_now(Gather& gather, UnitCache& units) {
  Latch latch(gather.ranges_to_read() + gather.shared_units().size());
  for (const UnitPin& pin : gather.shared_units()) {
    bool must_read = false;
    const bool later = units.when_ready(pin.unit(), must_read, [&latch] { latch.down(); });
    if (must_read) read_unit(pin.unit(), units);
    if (!later) latch.down();
  }
  std::vector<ReadRequest> reads;
  std::vector<const Store*> stores;
  for (const RangePointer& range : gather.ranges()) {
    if (range->resident) continue;
    stores.push_back(&range->source->store());
    ReadRequest& request = reads.emplace_back();
    request.path = range->path;
    request.offset = range->offset;
    request.length = range->length;
    request.into = std::move(range->into());
    request.done = [&latch, range = range.get()](ReadRequest&& done) {
      range->status = std::move(done.status);
      range->into() = std::move(done.into);
      latch.down();
    };
  }
  read_by_store(reads, stores);
  latch.wait();
}

}  // namespace headrace
