// SPDX-License-Identifier: Apache-2.0
#include "engine/bad_samples.h"

#include <fmt/format.h>

namespace headrace {
namespace {

// Damaged, or of a kind that nothing here decodes: either way there is no value.
bool is_bad_sample(const Status& why) {
  return why.code() == Code::kCorrupt || why.code() == Code::kUnsupported;
}

Status with_remedy(const Status& why) {
  const Place& place = why.place();
  Status out(why.code(), fmt::format("{}; bad_samples=\"replace\" takes another sample instead",
                                     why.message()));
  if (!place.file.empty()) out = out.in_file(place.file);
  if (place.offset >= 0) out = out.at(static_cast<uint64_t>(place.offset));
  if (place.sample >= 0) out = out.of_sample(static_cast<uint64_t>(place.sample), place.key);
  return out;
}

}  // namespace

void BadSampleLog::start() {
  MutexLock lock(mu_);
  known_.clear();
}

Status BadSampleLog::note(const Task& bad, uint64_t epoch, const Status& why) {
  if (!is_bad_sample(why)) return why;
  if (!policy_.replace) return with_remedy(why);
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
