// SPDX-License-Identifier: Apache-2.0
#include "base/per_process.h"

#include <pthread.h>

namespace headrace {
namespace {

std::atomic<uint64_t> g_depth{0};

void in_child() {
  g_depth.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

uint64_t fork_depth() {
  static const int registered = pthread_atfork(nullptr, nullptr, in_child);
  (void)registered;
  return g_depth.load(std::memory_order_relaxed);
}

}  // namespace headrace
