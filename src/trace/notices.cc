// SPDX-License-Identifier: Apache-2.0
#include "trace/notices.h"

#include <deque>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/per_process.h"
#include "base/shown_url.h"

namespace headrace {
namespace {

// Thread-safe.
class NoticeQueue {
 public:
  void add(std::string text) {
    MutexLock lock(mu_);
    texts_.push_back(std::move(text));
    if (texts_.size() > kMostNotices) texts_.pop_front();
    came_.notify_one();
  }
  std::optional<std::string> next(int timeout_ms) {
    MutexLock lock(mu_);
    if (texts_.empty() && timeout_ms > 0 && !ended_) (void)came_.wait_for_ms(mu_, timeout_ms);
    if (texts_.empty()) return std::nullopt;
    std::string text = std::move(texts_.front());
    texts_.pop_front();
    return text;
  }
  void end() {
    MutexLock lock(mu_);
    ended_ = true;
    came_.notify_all();
  }

 private:
  Mutex mu_;
  CondVar came_;
  std::deque<std::string> texts_ HEADRACE_GUARDED_BY(mu_);
  bool ended_ HEADRACE_GUARDED_BY(mu_) = false;
};

// Never destroyed: a thread may wait in it while the process ends.
NoticeQueue& queue() {
  static const auto& kept =
      *new PerProcess<NoticeQueue>([] { return std::make_unique<NoticeQueue>(); });
  return *kept;
}

}  // namespace

void tell_user(std::string text) {
  queue().add(shown_urls(std::move(text)));
}

std::optional<std::string> next_notice(int timeout_ms) {
  return queue().next(timeout_ms);
}

void end_notices() {
  queue().end();
}

}  // namespace headrace
