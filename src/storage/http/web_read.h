// SPDX-License-Identifier: Apache-2.0
//
// WebRead: one range of one file of a server, from the request to the checked bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "storage/http/protocol.h"
#include "storage/http/task.h"

namespace headrace {

// The version of every file that was seen, by hashes, and its size.  Thread-safe.
class SeenVersions {
 public:
  static constexpr size_t kMostVersions = 4'000'000;
  // What is there now.
  void set(const std::string& path, const std::string& version, uint64_t bytes) {
    if (version.empty()) return;
    MutexLock lock(mu_);
    if (seen_.size() < kMostVersions) seen_[hash(path)] = {hash(version), bytes};
  }
  // 0: not known.
  uint64_t bytes_of(const std::string& path) {
    MutexLock lock(mu_);
    const auto found = seen_.find(hash(path));
    return found == seen_.end() ? 0 : found->second.bytes;
  }
  // Whether it is what was seen; remembers it where nothing was.
  bool check(const std::string& path, const std::string& version) {
    if (version.empty()) return true;
    MutexLock lock(mu_);
    if (seen_.size() >= kMostVersions && !seen_.contains(hash(path))) return true;
    return seen_.try_emplace(hash(path), Seen{hash(version), 0}).first->second.version ==
           hash(version);
  }

 private:
  static uint64_t hash(std::string_view text) { return Hasher().add(text).finish().low; }
  struct Seen {
    uint64_t version = 0;
    uint64_t bytes = 0;
  };
  Mutex mu_;
  std::unordered_map<uint64_t, Seen> seen_ HEADRACE_GUARDED_BY(mu_);
};

// What requests need; lives as long as one of them.
struct WebShared {
  std::unique_ptr<const WebProtocol> protocol;
  std::shared_ptr<const StoreOptions> options;
  std::shared_ptr<WebStats> stats = std::make_shared<WebStats>();
  SeenVersions versions;
};

// Of one request for several ranges: some servers send whole files with less work than ranges, and
// more than this gains nothing.
inline constexpr uint64_t kMostJoined = uint64_t{16} << 20;

// One range, or several with little between them that are asked for in one request: a server has
// work with every request, however much it sends.  Each completes when its own bytes are there.
// Where nearly all of a file is wanted, the file is asked for: servers send it with less work than
// a range (sendfile).  One thread at a time.
struct WebRead {
  std::shared_ptr<WebShared> shared;
  ReadRequest request;           // the first that is not complete
  std::deque<ReadRequest> more;  // those behind it
  uint64_t begin = 0;            // where this try began
  size_t completed = 0;          // since then
  uint64_t whole_bytes = 0;      // of the file, where all of it is read
  // Of each piece of this try's body: the request that it belongs to, counted from the first of
  // the try, and its number among the pieces of that.
  std::vector<std::pair<size_t, size_t>> piece_of = {};
  std::string version;     // of the answer
  MutableBytes room = {};  // of a part of a split read: where its bytes go

  bool is_whole() const { return request.length == kWholeFile; }
  uint64_t end() const;  // of the last
  uint64_t bytes_left() const { return is_whole() ? 0 : end() - request.offset; }
  // Whether `next` begins where this ends, or little behind, and may come with it.
  bool is_before(const WebRead& next) const;
  // Takes over what `next` reads.
  void join(WebRead& next);

  bool wants_file() const;
  Result<HttpRequest> make() const;
  Result<BodyPlan> plan(const HttpHead& head);
  BodyPieces pieces(uint64_t bytes);
  Result<MutableBytes> memory(size_t piece);
  // So many bytes of the memory are there: completes whoever has all of them, but for the last.
  void arrived(uint64_t bytes);
  void done(Status status, HttpAnswer&& answer);
};

// Asks for each by itself: of several together one lies beyond the end of the file.
void read_each(const std::shared_ptr<WebShared>& shared, std::deque<ReadRequest> requests);

// kCorrupt: the file has only `size` bytes.
Status too_short(const ReadRequest& request, uint64_t size);

}  // namespace headrace
