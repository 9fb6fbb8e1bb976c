// SPDX-License-Identifier: Apache-2.0
//
// CacheStore: a store around a store that keeps what was read in a folder on a near disk or in
// memory, for all processes and jobs of the user on this machine.
//
//   HEADRACE_ASSIGN(auto cached, CacheStore::make(s3, {.folder = "/nvme/hr", .bytes = 200 << 30}));
//
//   read ──► object: URL and version ──► its blocks: there?  ── yes ──► pread, checked once
//                                              └─ no ──► whole block from the store around which it
//                                                        is, once for all who wait; then written
//
// What a file's bytes are is known by its version (an ETag, or size and time): a file that changed
// is another object.  A file without a version is never cached.  Blocks that cannot be kept (the
// folder is full, may only be read, or another process is at it) are not read whole: the ranges
// that were asked for go to the store as they are.
//
// Where a read fails in the cache, whatever the reason, the bytes come from the store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/per_process.h"
#include "storage/cache/folder.h"
#include "storage/store.h"

namespace headrace {

struct CacheCounts {
  uint64_t hits = 0;    // reads that the cache had all of
  uint64_t misses = 0;  // and those that it had not
  uint64_t hit_bytes = 0;
  uint64_t fetched_bytes = 0;  // read from the store
  uint64_t filled_bytes = 0;   // written
  uint64_t evicted_bytes = 0;
  uint64_t damaged = 0;   // blocks that were not what was written
  uint64_t not_kept = 0;  // blocks that there was no room for, or that another process wrote
};

class CacheReads;

// Thread-safe.  Destroyed, it writes what has arrived and completes the rest with kCancelled.
class CacheStore final : public StoreWrapper {
 public:
  static constexpr size_t kMostExpected = 10'000;
  static Result<std::shared_ptr<const CacheStore>> make(std::shared_ptr<const Store> inner,
                                                        const CacheOptions& options);
  ~CacheStore() override;

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  void cancel(const ReadGroup& group) const override;
  StoreCost cost(const std::string& path) const override;
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override;

  CacheCounts counts() const;
  // What the user should hear, each once.
  std::vector<std::string> take_notices() const;
  // Until all that has arrived is written.
  void wait_until_written() const;
  // All files that will be read: when all of them are in the cache, cost() is that of a near disk.
  // Too many are not looked at.
  void expect_files(std::vector<std::string> files) const;
  // Whether all of these are in the cache.
  bool is_complete() const;
  const CacheFolder& folder() const { return *folder_; }

 private:
  CacheStore(std::shared_ptr<const Store> inner, std::shared_ptr<const CacheFolder> folder);

  const std::shared_ptr<const CacheFolder> folder_;
  mutable Mutex mu_;
  mutable std::vector<std::string> files_ HEADRACE_GUARDED_BY(mu_);
  const PerProcess<CacheReads> reads_;
};

// For people: what lies in a cache folder.
struct CachedObject {
  std::string name;  // its URL
  uint64_t object_bytes = 0;
  uint64_t cached_bytes = 0;  // on the disk
  int64_t used_ns = 0;
};
Result<std::vector<CachedObject>> list_cache(const std::string& folder);

struct CacheCheck {
  uint64_t files = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  std::vector<std::string> damaged;  // what was removed, and why
};
// Reads all of it against its checksums.  Files that are damaged are removed.
Result<CacheCheck> verify_cache(const std::string& folder);

// Removes all that headrace wrote there, and the folder where it is then empty.  Returns the bytes.
// Jobs that use it read on, from the store.
Result<uint64_t> clear_cache(const std::string& folder);

// Where indexes of what is cached are kept, in the cache's folder; it may not be there.
std::string index_in_cache(const std::string& folder);

}  // namespace headrace
