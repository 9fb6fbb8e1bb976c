// SPDX-License-Identifier: Apache-2.0
#include "storage/store.h"

#include <optional>

#include "base/mutex.h"

namespace headrace {
namespace {

// One read that someone waits for.  Notified under the lock: the waiter may destroy it at once.
class Waiter {
 public:
  void set(Status status) {
    MutexLock lock(mu_);
    status_ = std::move(status);
    done_.notify_one();
  }
  Status wait() {
    MutexLock lock(mu_);
    while (!status_) done_.wait(mu_);
    return *status_;
  }

 private:
  Mutex mu_;
  CondVar done_;
  std::optional<Status> status_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace

Status Store::read_at(const std::string& path, uint64_t offset, uint64_t length,
                      Buffer& into) const {
  Waiter waiter;
  ReadRequest request{path, offset, length, &into, [&waiter](Status s) { waiter.set(s); }};
  read({&request, 1});
  return waiter.wait();
}

Result<Buffer> Store::read_all(const std::string& path) const {
  Buffer into;
  HEADRACE_TRY(read_at(path, 0, kWholeFile, into));
  return into;
}

}  // namespace headrace
