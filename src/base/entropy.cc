// SPDX-License-Identifier: Apache-2.0
#include "base/entropy.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace headrace {

namespace {

// A sandbox that refuses the call: this process, now.
uint64_t without_kernel() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(getpid()) << 40 ^ static_cast<uint64_t>(now.tv_sec) << 30 ^
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

// So few bytes come whole or, before the kernel has gathered any, after a wait.
uint64_t entropy_word() {
  uint64_t word = 0;
  while (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
    if (errno != EINTR) return without_kernel();
  }
  return word;
}

}  // namespace headrace
