// SPDX-License-Identifier: Apache-2.0
//
// PerProcess: state behind a lock that a forked child must not take along.  A fork may come while
// another thread, which the child does not have, holds the lock and has the state half changed.
// The child makes its own at the first use; the parent's is left as it lies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace headrace {

// How many forks lie between the process that first asked and this one.
uint64_t fork_depth();

// Thread-safe as far as T is.
template <typename T>
class PerProcess {
 public:
  using Make = std::function<std::unique_ptr<T>()>;
  explicit PerProcess(Make make) : make_(std::move(make)), held_(new Held{fork_depth(), make_()}) {}
  ~PerProcess() {
    Held* held = held_.load(std::memory_order_acquire);
    if (held->depth == fork_depth()) delete held;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& operator*() const {
    Held* held = held_.load(std::memory_order_acquire);
    return *(held->depth == fork_depth() ? held : renewed(held))->value;
  }
  T* operator->() const { return &**this; }

 private:
  struct Held {
    const uint64_t depth;
    const std::unique_ptr<T> value;
  };

  Held* renewed(Held* inherited) const {
    auto fresh = std::unique_ptr<Held>(new Held{fork_depth(), make_()});
    if (held_.compare_exchange_strong(inherited, fresh.get(), std::memory_order_acq_rel))
      return fresh.release();
    return inherited;  // another thread of the child was faster: this is what it made
  }

  const Make make_;
  mutable std::atomic<Held*> held_;
};

}  // namespace headrace
