// SPDX-License-Identifier: Apache-2.0
//
// Wave: the samples that are held in memory between source and shards.
//
// A shuffled shard draws from all of the source.  Where the source opens only in large units (row
// groups), reading shard after shard would open each unit for each shard.  So the samples of as
// many shards as memory holds are read in the order of the source, and then written in theirs:
//
//   source   ──in its order, by all threads──►  wave  ──in the shards' order──►  shards
//
// While one wave is written the next is read.  What is written does not depend on any of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "pack/sample_reader.h"

namespace headrace {

// Thread-safe while it is read, and again while it is written.
class Wave {
 public:
  // Places [begin, end) of all that is to be written, within `budget_bytes`.
  Wave(uint64_t begin, uint64_t end, uint64_t budget_bytes)
      : begin_(begin), budget_(budget_bytes), end_(end), records_(end - begin) {}

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_.load(std::memory_order_relaxed); }
  // False for a place that was given up, because its wave held too much.
  bool wants(uint64_t place) const { return place < end(); }

  // Where this makes the wave too large its later half is given up, for the next wave; one
  // sample is always kept.
  void put(uint64_t place, HeldRecord record) {
    MutexLock lock(mu_);
    if (!wants(place)) return;
    held_ += record.memory();
    records_[place - begin_] = std::move(record);
    while (held_ > budget_ && end() - begin_ > 1) {
      const uint64_t middle = begin_ + (end() - begin_ + 1) / 2;
      for (uint64_t p = middle; p < end(); ++p) release(p);
      end_ = middle;
    }
  }
  // The record, which the wave holds no longer.  Each place by one thread.
  HeldRecord take(uint64_t place) { return std::exchange(records_[place - begin_], {}); }
  uint64_t held_bytes() {
    MutexLock lock(mu_);
    return held_;
  }

 private:
  void release(uint64_t place) HEADRACE_REQUIRES(mu_) {
    HeldRecord& record = records_[place - begin_];
    if (!record.bytes.empty() || !record.key.empty()) held_ -= record.memory();
    record = {};
  }

  const uint64_t begin_;
  const uint64_t budget_;
  std::atomic<uint64_t> end_;
  Mutex mu_;
  uint64_t held_ HEADRACE_GUARDED_BY(mu_) = 0;
  std::vector<HeldRecord> records_;
};

}  // namespace headrace
