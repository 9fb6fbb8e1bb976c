// SPDX-License-Identifier: Apache-2.0
#include "storage/first_batch.h"

#include <vector>

#include "base/mutex.h"

namespace headrace {
namespace {

// Few live at a time: one for each loader that reads.
class FirstBatches {
 public:
  void set(const std::shared_ptr<const ReadGroup>& group, uint64_t priority) {
    MutexLock lock(mu_);
    std::erase_if(groups_, [](const Entry& known) { return known.group.expired(); });
    groups_.push_back({group, priority});
  }
  bool contains(const ReadRequest& request) {
    MutexLock lock(mu_);
    for (const Entry& known : groups_)
      if (known.priority == request.priority && known.group.lock() == request.group) return true;
    return false;
  }

 private:
  struct Entry {
    std::weak_ptr<const ReadGroup> group;
    uint64_t priority = 0;
  };
  Mutex mu_;
  std::vector<Entry> groups_ HEADRACE_GUARDED_BY(mu_);
};

FirstBatches& of_process() {
  static auto& batches = *new FirstBatches;  // never destroyed: threads may ask at the end
  return batches;
}

}  // namespace

void set_first_batch(const std::shared_ptr<const ReadGroup>& group, uint64_t priority) {
  of_process().set(group, priority);
}

bool is_for_first_batch(const ReadRequest& request) {
  return request.group != nullptr && of_process().contains(request);
}

}  // namespace headrace
