// SPDX-License-Identifier: Apache-2.0
#include "trace/counters.h"

namespace headrace {
namespace {

std::atomic<size_t> g_threads{0};
constinit thread_local size_t t_number = 0;  // 0: has none yet

}  // namespace

size_t thread_shard(size_t shards) {
  if (t_number == 0) t_number = 1 + g_threads.fetch_add(1, std::memory_order_relaxed);
  return (t_number - 1) % shards;
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
