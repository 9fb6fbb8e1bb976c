// SPDX-License-Identifier: Apache-2.0
//
// SpareBuffers: memory that goes round while files are copied.  Fresh pages would be cleared by the
// kernel for every part, which costs as much as copying it.
#pragma once

#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/mutex.h"

namespace headrace {

// Thread-safe.
class SpareBuffers {
 public:
  Buffer take() {
    MutexLock lock(mu_);
    if (spare_.empty()) return {};
    Buffer last = std::move(spare_.back());
    spare_.pop_back();
    return last;
  }
  void give_back(Buffer buffer) {
    MutexLock lock(mu_);
    spare_.push_back(std::move(buffer));
  }

 private:
  Mutex mu_;
  std::vector<Buffer> spare_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
