// SPDX-License-Identifier: Apache-2.0
//
// Mutex, MutexLock and CondVar, annotated so that clang -Wthread-safety checks
// at compile time that guarded state is only touched under its lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HEADRACE_TSA(x) __attribute__((x))
#else
#define HEADRACE_TSA(x)
#endif
#define HEADRACE_GUARDED_BY(mu) HEADRACE_TSA(guarded_by(mu))
#define HEADRACE_REQUIRES(mu) HEADRACE_TSA(requires_capability(mu))
#define HEADRACE_EXCLUDES(mu) HEADRACE_TSA(locks_excluded(mu))

namespace headrace {

class HEADRACE_TSA(capability("mutex")) Mutex {
 public:
  void lock() HEADRACE_TSA(acquire_capability()) { mu_.lock(); }
  void unlock() HEADRACE_TSA(release_capability()) { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class HEADRACE_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) HEADRACE_TSA(acquire_capability(mu)) : mu_(mu) { mu_.lock(); }
  ~MutexLock() HEADRACE_TSA(release_capability()) { mu_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// A std::condition_variable on the Mutex's own std::mutex: no second lock inside.
class CondVar {
 public:
  void wait(Mutex& mu) HEADRACE_REQUIRES(mu) {
    std::unique_lock<std::mutex> held(mu.mu_, std::adopt_lock);
    cv_.wait(held);
    held.release();
  }
  // False when the time ran out.  The wall clock, which ThreadSanitizer knows how to follow.
  bool wait_for_ms(Mutex& mu, int ms) HEADRACE_REQUIRES(mu) {
    std::unique_lock<std::mutex> held(mu.mu_, std::adopt_lock);
    const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(ms);
    const bool woken = cv_.wait_until(held, until) == std::cv_status::no_timeout;
    held.release();
    return woken;
  }
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace headrace
