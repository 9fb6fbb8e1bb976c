// SPDX-License-Identifier: Apache-2.0
//
// prefault: memory that another thread will write soon gets its pages now.  A fresh page is cleared
// by whoever touches it first; of a thread that receives from a network that was two thirds of its
// time.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "base/arena.h"
#include "base/bytes.h"

namespace headrace {

// Contents stay.  Where the kernel cannot (before Linux 5.14) nothing happens.
inline void prefault(MutableBytes memory) {
#ifndef MADV_POPULATE_WRITE
  constexpr int MADV_POPULATE_WRITE = 23;
#endif
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t first = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uintptr_t end = (begin + memory.size()) / kPageBytes * kPageBytes;
  if (end > first)
    (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
}

}  // namespace headrace
