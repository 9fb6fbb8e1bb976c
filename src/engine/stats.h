// SPDX-License-Identifier: Apache-2.0
//
// Counters of a stage: what it did, and what it waited for.  From these comes the
// verdict on the bottleneck, so they are counted always, not only when asked for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace {

struct StageStats {
  uint64_t items = 0;
  uint64_t bytes = 0;
  uint64_t busy_ns = 0;
  uint64_t wait_input_ns = 0;  // nothing to do yet
  uint64_t wait_room_ns = 0;   // no place to put the result (budget, look-ahead)
};

// Thread-safe.  Relaxed: each number is right by itself, a snapshot may straddle an event.
class StageCounters {
 public:
  void work(uint64_t items, uint64_t bytes, uint64_t ns) {
    add(items_, items), add(bytes_, bytes), add(busy_, ns);
  }
  void waited_for_input(uint64_t ns) { add(wait_input_, ns); }
  void waited_for_room(uint64_t ns) { add(wait_room_, ns); }
  StageStats snapshot() const {
    return {items_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
            busy_.load(std::memory_order_relaxed), wait_input_.load(std::memory_order_relaxed),
            wait_room_.load(std::memory_order_relaxed)};
  }

 private:
  static void add(std::atomic<uint64_t>& to, uint64_t v) {
    to.fetch_add(v, std::memory_order_relaxed);
  }
  std::atomic<uint64_t> items_{0}, bytes_{0}, busy_{0}, wait_input_{0}, wait_room_{0};
};

// Nanoseconds since it was made.
class Stopwatch {
 public:
  uint64_t ns() const {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now() - start_)
                                     .count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace headrace
