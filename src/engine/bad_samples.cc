// SPDX-License-Identifier: Apache-2.0
#include "engine/bad_samples.h"

#include <fmt/format.h>

namespace headrace {

void BadSampleLog::start() {
  MutexLock lock(mu_);
  known_.clear();
}

Status BadSampleLog::note(const Task& bad, uint64_t epoch, const Status& why) {
  if (why.code() != Code::kCorrupt || !policy_.replace) return why;
  MutexLock lock(mu_);
  known_.erase(known_.begin(), known_.lower_bound(epoch > 1 ? epoch - 1 : 0));
  auto& known = known_[epoch];
  // Once, even when it was tried as a substitute too.
  if (!known.emplace(bad.source, bad.sample).second) return {};
  if (known.size() > policy_.budget)
    return Status(why.code(), fmt::format("more than {} bad samples in this epoch, the last: {}",
                                          policy_.budget, why.text()));
  all_.push_back({bad.sample, bad.source, epoch, why.place().file, why.place().offset,
                  why.place().key, std::string(why.message())});
  return {};
}

std::vector<Quarantined> BadSampleLog::all() const {
  MutexLock lock(mu_);
  return all_;
}

}  // namespace headrace
