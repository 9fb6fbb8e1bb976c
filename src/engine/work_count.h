// SPDX-License-Identifier: Apache-2.0
//
// WorkCount: what someone works on or waits for, counted by tokens, so that stopping can wait
// until nothing is left.
#pragma once

#include <utility>

#include "base/mutex.h"

namespace headrace {

// Thread-safe.
class WorkCount {
 public:
  // Movable; its end is the end of the work.
  class Token {
   public:
    Token() = default;
    Token(Token&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    Token& operator=(Token&& other) noexcept {
      end();
      count_ = std::exchange(other.count_, nullptr);
      return *this;
    }
    ~Token() { end(); }
    void end() {
      if (count_ != nullptr) std::exchange(count_, nullptr)->done();
    }

   private:
    friend class WorkCount;
    explicit Token(WorkCount* count) : count_(count) {}
    WorkCount* count_ = nullptr;
  };

  Token begin() {
    MutexLock lock(mu_);
    ++active_;
    return Token(this);
  }
  void wait_none() {
    MutexLock lock(mu_);
    while (active_ > 0) none_.wait(mu_);
  }

 private:
  // Notified under the lock: whoever waits may destroy this at once.
  void done() {
    MutexLock lock(mu_);
    if (--active_ == 0) none_.notify_all();
  }

  Mutex mu_;
  CondVar none_;
  size_t active_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
