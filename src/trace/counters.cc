// SPDX-License-Identifier: Apache-2.0
#include "trace/counters.h"

namespace headrace {

size_t thread_shard(size_t shards) {
  static constinit std::atomic<size_t> threads{0};
  static constinit thread_local size_t number = 0;  // 0: this thread has none yet
  if (number == 0) number = 1 + threads.fetch_add(1, std::memory_order_relaxed);
  return (number - 1) % shards;
}

StageStats StageCounters::snapshot() const {
  StageStats out;
  for (const Shard& s : shards_) {
    out.items += s.items.load(std::memory_order_relaxed);
    out.bytes += s.bytes.load(std::memory_order_relaxed);
    out.busy_ns += s.busy.load(std::memory_order_relaxed);
    out.wait_input_ns += s.wait_input.load(std::memory_order_relaxed);
    out.wait_room_ns += s.wait_room.load(std::memory_order_relaxed);
  }
  return out;
}

}  // namespace headrace
