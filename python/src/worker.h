// SPDX-License-Identifier: Apache-2.0
//
// One process of a WorkerPool, as the pool and its leases see it.
#pragma once

#include "worker_pool.h"

namespace headrace::py {

// Known to the lease that has it, and to close().
struct WorkerPool::Worker {
  pid_t pid = -1;  // -1: none runs
  int socket = -1;
  bool ready = false;
  struct Known {
    uint64_t segment;
    uint64_t used;  // by which call
  };
  std::vector<Known> known;
  uint64_t calls = 0;
  Mutex mu;  // of pid, against close()
};

// Waits for a process to end, and reaps it; false where it has not after so long.
bool wait_for_end(pid_t pid, int timeout_ms, int& status);

}  // namespace headrace::py
