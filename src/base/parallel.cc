// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/guard.h"
#include "base/interrupt.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// Thread-safe.
class FirstFailure {
 public:
  void report(size_t number, const Status& status) {
    MutexLock lock(mu_);
    if (number < number_) {
      number_ = number;
      status_ = status;
    }
  }
  Status take() {
    MutexLock lock(mu_);
    return status_;
  }

 private:
  Mutex mu_;
  size_t number_ HEADRACE_GUARDED_BY(mu_) = ~size_t{0};
  Status status_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

Status parallel_for(size_t count, unsigned threads, const std::function<Status(size_t)>& job) {
  FirstFailure failure;
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  const std::atomic<bool>* const interrupt = interrupt_flag();
  const auto work = [&] {
    const InterruptScope scope(interrupt);
    for (size_t i = next.fetch_add(1); i < count && !stop.load(); i = next.fetch_add(1)) {
      const Status status = guard([&] { return job(i); });
      if (status.ok()) continue;
      failure.report(i, status);
      stop.store(true);
    }
  };
  {
    const size_t extra = std::min<size_t>(std::max(1u, threads), count);
    std::vector<std::jthread> helpers;
    for (size_t t = 1; t < extra; ++t) helpers.emplace_back(work);
    work();
  }
  return failure.take();
}

}  // namespace headrace
