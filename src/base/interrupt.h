// SPDX-License-Identifier: Apache-2.0
//
// Whether the work of this thread is still wanted: Ctrl-C must reach a wait for a server that never
// answers.
//
//   const InterruptScope scope(&flag);   // by whoever begins the work; parallel_for passes it on
//   … interrupt_flag() …                 // by whoever waits: looks at it now and then
#pragma once

#include <atomic>

namespace headrace {

inline constexpr int kInterruptMs = 100;  // between two looks

// Null: nobody can interrupt this thread.
const std::atomic<bool>* interrupt_flag();

// One thread at a time: the one that made it.
class InterruptScope {
 public:
  explicit InterruptScope(const std::atomic<bool>* flag);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

}  // namespace headrace
