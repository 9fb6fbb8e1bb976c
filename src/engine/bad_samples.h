// SPDX-License-Identifier: Apache-2.0
//
// BadSampleLog: which samples were replaced, and whether one more may be.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"

namespace headrace {

// Thread-safe.
class BadSampleLog {
 public:
  explicit BadSampleLog(BadSamples policy) : policy_(policy) {}

  // Notes a sample that could not be used.  OK: it may be replaced; else what to tell the consumer
  // (storage errors, policy "raise", an exhausted budget).
  Status note(const Task& bad, uint64_t epoch, const Status& why) HEADRACE_EXCLUDES(mu_);
  void start() HEADRACE_EXCLUDES(mu_);  // a feed begins
  std::vector<Quarantined> all() const HEADRACE_EXCLUDES(mu_);

 private:
  const BadSamples policy_;
  mutable Mutex mu_;
  // Of each epoch under way, the samples found bad: (source, sample).
  std::map<uint64_t, std::set<std::pair<uint32_t, uint64_t>>> known_ HEADRACE_GUARDED_BY(mu_);
  std::vector<Quarantined> all_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
