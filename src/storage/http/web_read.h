// SPDX-License-Identifier: Apache-2.0
//
// WebRead: one range of one file of a server, from the request to the checked bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/hash.h"
#include "base/mutex.h"
#include "storage/http/protocol.h"
#include "storage/http/task.h"

namespace headrace {

// The version of every file that was seen, by hashes.  Thread-safe.
class SeenVersions {
 public:
  static constexpr size_t kMostVersions = 4'000'000;
  // What is there now.
  void set(const std::string& path, const std::string& version) {
    if (version.empty()) return;
    MutexLock lock(mu_);
    if (seen_.size() < kMostVersions) seen_[hash(path)] = hash(version);
  }
  // Whether it is what was seen; remembers it where nothing was.
  bool check(const std::string& path, const std::string& version) {
    if (version.empty()) return true;
    MutexLock lock(mu_);
    if (seen_.size() >= kMostVersions && !seen_.contains(hash(path))) return true;
    return seen_.try_emplace(hash(path), hash(version)).first->second == hash(version);
  }

 private:
  static uint64_t hash(std::string_view text) { return Hasher().add(text).finish().low; }
  Mutex mu_;
  std::unordered_map<uint64_t, uint64_t> seen_ HEADRACE_GUARDED_BY(mu_);
};

// What requests need; lives as long as one of them.
struct WebShared {
  std::unique_ptr<const WebProtocol> protocol;
  std::shared_ptr<const StoreOptions> options;
  std::shared_ptr<WebStats> stats = std::make_shared<WebStats>();
  SeenVersions versions;
};

struct WebRead {
  std::shared_ptr<WebShared> shared;
  ReadRequest request;
  std::string version;  // of the answer

  bool is_whole() const { return request.length == kWholeFile; }
  Result<HttpRequest> make() const;
  Result<BodyPlan> plan(const HttpHead& head);
  Result<MutableBytes> memory(uint64_t bytes);
  void done(Status status, HttpAnswer&& answer);
};

// kCorrupt: the file has only `size` bytes.
Status too_short(const ReadRequest& request, uint64_t size);

}  // namespace headrace
