// SPDX-License-Identifier: Apache-2.0
//
// Planner: the feed, one caller at a time.
#pragma once

#include <functional>
#include <memory>

#include "base/mutex.h"
#include "engine/feed.h"

namespace headrace {

// Thread-safe.
class Planner {
 public:
  void start(std::unique_ptr<Feed> feed) HEADRACE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    feed_ = std::move(feed);
  }
  void stop() HEADRACE_EXCLUDES(mu_) {
    std::unique_ptr<Feed> gone;
    MutexLock lock(mu_);
    gone.swap(feed_);
  }
  // The next step in plan order; false at the end of the data.
  Result<bool> next(FeedStep& out) HEADRACE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (!feed_) return false;
    return feed_->next(out);
  }
  void change(const std::function<void(Feed&)>& change) HEADRACE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (feed_) change(*feed_);
  }
  bool substitute(const Task& task, uint64_t attempt, Task& out) HEADRACE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return feed_ && feed_->substitute(task, attempt, out);
  }

 private:
  Mutex mu_;
  std::unique_ptr<Feed> feed_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
