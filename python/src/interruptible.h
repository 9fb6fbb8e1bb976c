// SPDX-License-Identifier: Apache-2.0
//
// Work that may wait for long, so that Ctrl-C ends it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string_view>

#include "base/interrupt.h"
#include "storage/store_options.h"

namespace headrace::py {

// Waits for work in another thread; Ctrl-C sets `flag`, and is raised once the work has ended.
// Where this thread itself is no longer wanted, the work ends and says so.
template <typename T>
T wait_for(std::future<T> work, std::atomic<bool>& flag) {
  bool interrupted = false;
  const std::atomic<bool>* const given_up = interrupt_flag();
  while (true) {
    {
      nanobind::gil_scoped_release release;
      if (work.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready) break;
    }
    if (!interrupted && PyErr_CheckSignals() != 0) {
      interrupted = true;
      flag = true;
    }
    if (given_up != nullptr && given_up->load()) flag = true;
  }
  if (interrupted) throw nanobind::python_error();
  return work.get();
}

inline bool is_remote(std::string_view url) {
  return url.find("://") != std::string_view::npos;
}

// Calls `work` without the GIL.  What waits for a server (`far`) runs in a thread of its own, where
// waits look at `flag`.
template <typename F>
auto run_interruptible(bool far, std::atomic<bool>& flag, const F& work) {
  if (far) {
    const StoreOptions& storage = current_store_options();  // of this thread
    return wait_for(std::async(std::launch::async,
                               [&] {
                                 const ScopedStoreOptions same(storage);
                                 const InterruptScope scope(&flag);
                                 return work();
                               }),
                    flag);
  }
  nanobind::gil_scoped_release release;
  return work();
}

// Likewise, where nothing else looks at the flag.
template <typename F>
auto run_interruptible(bool far, const F& work) {
  std::atomic<bool> flag{false};
  return run_interruptible(far, flag, work);
}

}  // namespace headrace::py
