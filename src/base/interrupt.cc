// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

namespace headrace {
namespace {

thread_local const std::atomic<bool>* of_this_thread = nullptr;

}  // namespace

const std::atomic<bool>* interrupt_flag() {
  return of_this_thread;
}

InterruptScope::InterruptScope(const std::atomic<bool>* flag) : before_(of_this_thread) {
  of_this_thread = flag;
}

InterruptScope::~InterruptScope() {
  of_this_thread = before_;
}

}  // namespace headrace
