// SPDX-License-Identifier: Apache-2.0
//
// The clock of spans, counters and requests: steady, in nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace headrace {

inline uint64_t steady_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// Nanoseconds since it was made.  Immutable, hence thread-safe.
class Stopwatch {
 public:
  uint64_t ns() const { return steady_ns() - start_; }

 private:
  uint64_t start_ = steady_ns();
};

}  // namespace headrace
