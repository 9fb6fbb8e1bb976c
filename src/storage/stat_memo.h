// SPDX-License-Identifier: Apache-2.0
//
// StatMemo: a store that is asked about each path and each folder once, for the time of an opening.
// On a server every question takes a round trip: whoever knows what will be asked hands all of it
// to stat_all() first.
//
// OpeningMemo: the memos of one call that opens a data set and asks in several places (layouts,
// arrays, formats, indexes).  StoreOptions carry it; open_store() puts its stores around what it
// makes.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"

namespace headrace {

// Thread-safe.
class StatMemo final : public StoreWrapper {
 public:
  explicit StatMemo(std::shared_ptr<const Store> inner) : StoreWrapper(std::move(inner)) {}

  // From now on the store itself answers.
  void end() const {
    ended_.store(true);
    MutexLock lock(mu_);
    known_.clear();
    pages_.clear();
  }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    if (ended_.load()) return inner().stat_all(paths);
    std::vector<std::string> unknown;
    {
      MutexLock lock(mu_);
      for (const std::string& path : paths)
        if (!known_.contains(path)) unknown.push_back(path);
    }
    std::vector<Result<FileInfo>> asked;
    if (!unknown.empty()) asked = inner().stat_all(unknown);
    std::map<std::string, Result<FileInfo>> now;
    for (size_t i = 0; i < unknown.size(); ++i) now.insert_or_assign(unknown[i], asked[i]);
    MutexLock lock(mu_);
    std::vector<Result<FileInfo>> out;
    out.reserve(paths.size());
    for (const std::string& path : paths) {
      const auto it = now.find(path);
      if (it != now.end() && !ended_.load()) known_.insert_or_assign(path, it->second);
      out.push_back(it != now.end() ? it->second : known_or_gone(path));
    }
    return out;
  }

  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override {
    const std::pair key(folder, after);
    if (!ended_.load()) {
      MutexLock lock(mu_);
      if (const auto it = pages_.find(key); it != pages_.end()) return it->second;
    }
    Result<ListPage> page = inner().list_page(folder, after);
    MutexLock lock(mu_);
    if (ended_.load()) return page;
    pages_.insert_or_assign(key, page);
    // A listing that has tags says all that a question for each file would.
    if (page.ok())
      for (const FileInfo& entry : page.value().entries)
        if (!entry.is_folder && entry.version.starts_with('"'))
          known_.try_emplace(entry.path, entry);
    return page;
  }

 private:
  // It was known a moment ago; end() may have come between.
  Result<FileInfo> known_or_gone(const std::string& path) const HEADRACE_REQUIRES(mu_) {
    const auto it = known_.find(path);
    return it != known_.end() ? it->second : inner().stat(path);
  }

  mutable std::atomic<bool> ended_{false};
  mutable Mutex mu_;
  mutable std::map<std::string, Result<FileInfo>> known_ HEADRACE_GUARDED_BY(mu_);
  mutable std::map<std::pair<std::string, std::string>, Result<ListPage>> pages_
      HEADRACE_GUARDED_BY(mu_);
};

// Thread-safe.
class OpeningMemo {
 public:
  using Make = std::function<Result<std::shared_ptr<const Store>>()>;

  // The store of this name, made where there is none yet.
  Result<std::shared_ptr<const Store>> store(const std::string& name, const Make& make) {
    {
      MutexLock lock(mu_);
      if (const auto it = stores_.find(name); it != stores_.end())
        return std::shared_ptr<const Store>(it->second);
    }
    // Without the lock: of other schemes Python makes it, which may wait for another thread.
    HEADRACE_ASSIGN(std::shared_ptr<const Store> inner, make());
    MutexLock lock(mu_);
    if (ended_) return inner;
    auto memo = std::make_shared<const StatMemo>(std::move(inner));
    return std::shared_ptr<const Store>(stores_.try_emplace(name, std::move(memo)).first->second);
  }
  void end() {
    MutexLock lock(mu_);
    ended_ = true;
    for (const auto& [name, store] : stores_) store->end();
    stores_.clear();
  }

 private:
  Mutex mu_;
  bool ended_ HEADRACE_GUARDED_BY(mu_) = false;
  std::map<std::string, std::shared_ptr<const StatMemo>> stores_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
