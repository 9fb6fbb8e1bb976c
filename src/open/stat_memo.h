// SPDX-License-Identifier: Apache-2.0
//
// StatMemo: a store that is asked about each path once, for the time of an opening.  On a server
// every question takes a round trip: whoever knows what will be asked hands all of it to stat_all()
// first.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"

namespace headrace {

// Thread-safe.
class StatMemo final : public StoreWrapper {
 public:
  explicit StatMemo(std::shared_ptr<const Store> inner) : StoreWrapper(std::move(inner)) {}

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<std::string> unknown;
    {
      MutexLock lock(mu_);
      for (const std::string& path : paths)
        if (!known_.contains(path)) unknown.push_back(path);
    }
    std::vector<Result<FileInfo>> asked;
    if (!unknown.empty()) asked = inner().stat_all(unknown);
    MutexLock lock(mu_);
    for (size_t i = 0; i < unknown.size(); ++i) known_.insert_or_assign(unknown[i], asked[i]);
    std::vector<Result<FileInfo>> out;
    out.reserve(paths.size());
    for (const std::string& path : paths) out.push_back(known_.at(path));
    return out;
  }

 private:
  mutable Mutex mu_;
  mutable std::map<std::string, Result<FileInfo>> known_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
