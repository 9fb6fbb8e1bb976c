// SPDX-License-Identifier: Apache-2.0
//
// Counters of a stage: what it did, and what it waited for.  From these comes the
// verdict on the bottleneck, so they are counted always, not only when asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/clock.h"

namespace headrace {

// A small number of the calling thread, below `shards`.  Threads count from 0 as they first ask.
size_t thread_shard(size_t shards);

struct StageStats {
  uint64_t items = 0;
  uint64_t bytes = 0;
  uint64_t busy_ns = 0;
  uint64_t wait_input_ns = 0;  // nothing to do yet
  uint64_t wait_room_ns = 0;   // no place to put the result (budget, look-ahead)
};

// Thread-safe.  Relaxed: each number is right by itself, a snapshot may straddle an event.  Each
// thread adds to a cache line of its own (beyond kShards threads some share), a snapshot sums.
class StageCounters {
 public:
  void work(uint64_t items, uint64_t bytes, uint64_t ns) {
    Shard& s = mine();
    add(s.items, items), add(s.bytes, bytes), add(s.busy, ns);
  }
  void waited_for_input(uint64_t ns) { add(mine().wait_input, ns); }
  void waited_for_room(uint64_t ns) { add(mine().wait_room, ns); }
  StageStats snapshot() const;

 private:
  static constexpr size_t kShards = 32;
  using Count = std::atomic<uint64_t>;
  struct alignas(64) Shard {
    Count items{0}, bytes{0}, busy{0}, wait_input{0}, wait_room{0};
  };

  static void add(Count& to, uint64_t v) { to.fetch_add(v, std::memory_order_relaxed); }
  Shard& mine() { return shards_[thread_shard(kShards)]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace headrace
