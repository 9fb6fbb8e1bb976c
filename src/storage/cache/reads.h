// SPDX-License-Identifier: Apache-2.0
//
// CacheReads: the reads of a CacheStore in one process.
//
//   request ─► Assembly: its memory, and how many parts are still to come
//                 └─ part of a block that is not there ─► BlockFetch, one for all who want the
//                 block
//                                                           └─ arrived ─► copied to all, written
//
// Locks: mu_ guards the tables; an Assembly has its own, which may be held when mu_ is taken, never
// the other way round.  Neither is held while a request completes, a store is called or a block is
// written.
// Why nobody waits for ever: a fetch that is registered is either handed to the store, which
// completes it, or stands in queue_; whoever takes bytes off under_way_ looks at queue_ next, and
// under_way_ is not zero while queue_ is not empty.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "storage/cache/cache.h"
#include "storage/lru.h"

namespace headrace {

// A file at a version.  While it lives the process counts as a user of it.  Immutable.
struct CacheEntry {
  CacheEntry(const FileInfo& info, const CacheFolder& folder);
  ~CacheEntry();
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  const std::string path;
  const std::string version;
  const uint64_t bytes;
  const Hash128 object;
};
using CacheEntryPointer = std::shared_ptr<const CacheEntry>;

class Assembly;
struct BlockFetch;

// Thread-safe.
class CacheReads {
 public:
  CacheReads(std::shared_ptr<const Store> inner, std::shared_ptr<const CacheFolder> folder);
  ~CacheReads();

  void read(std::span<ReadRequest> requests);
  bool read_if_resident(ReadRequest& request);
  void cancel(const ReadGroup& group);
  // What a stat or a listing said.
  void remember(const FileInfo& info);
  bool is_complete(std::span<const std::string> files);
  // From now on read() returns when the bytes are there.
  void wait_in_caller() { waits_.store(true); }

  CacheCounts counts() const;
  std::vector<std::string> take_notices();
  void wait_until_written();

 private:
  using BlockId = std::tuple<uint64_t, uint64_t, uint64_t>;  // object, number of the block
  using FetchPointer = std::shared_ptr<BlockFetch>;
  using AssemblyPointer = std::shared_ptr<Assembly>;
  using SegmentPointer = std::shared_ptr<const Segment>;

  static BlockId id_of(const BlockFetch& fetch);
  CacheEntryPointer known(std::string_view path);
  CacheEntryPointer keep(const FileInfo& info);
  std::vector<Result<CacheEntryPointer>> look_up(std::span<ReadRequest* const> requests);
  struct SegmentKey {
    Hash128 object;
    uint64_t number = 0;
    bool operator==(const SegmentKey&) const = default;
  };
  struct SegmentHash {
    size_t operator()(const SegmentKey& k) const { return k.object.low + k.number; }
  };

  bool in_caller(const std::string& path);
  SegmentPointer segment(const CacheEntry& entry, uint64_t number);
  AssemblyPointer serve(ReadRequest& request, CacheEntryPointer entry);
  bool read_range(const CacheEntry& entry, uint64_t offset, MutableBytes out, bool at_once);
  void assemble(const AssemblyPointer& assembly, const CacheEntryPointer& entry);
  void want(const AssemblyPointer& assembly, const CacheEntryPointer& entry, uint64_t block,
            uint64_t begin, MutableBytes out);
  bool prepare(BlockFetch& fetch);
  void start(const FetchPointer& fetch);
  void send(const FetchPointer& fetch);
  void send_uncached(const FetchPointer& fetch);
  void arrived(const FetchPointer& fetch, ReadRequest&& request);
  void write(const FetchPointer& fetch);
  void end(const FetchPointer& fetch);
  void run_writer();
  void forget(const CacheEntry& entry);
  void note(std::string text);

  const std::shared_ptr<const Store> inner_;
  const std::shared_ptr<const CacheFolder> folder_;
  const std::shared_ptr<ReadGroup> group_ = std::make_shared<ReadGroup>();
  const Descriptors files_;
  std::atomic<bool> waits_{false};
  // What the store's cost says, by the scheme of the path: a list may name files of several.  The
  // lock is taken last, and held for no call.
  Mutex costs_mu_;
  std::map<std::string, bool, std::less<>> in_caller_ HEADRACE_GUARDED_BY(costs_mu_);

  Mutex mu_;
  CondVar changed_;
  bool closing_ HEADRACE_GUARDED_BY(mu_) = false;
  std::unordered_map<std::string, CacheEntryPointer, TextHash, std::equal_to<>> entries_
      HEADRACE_GUARDED_BY(mu_);
  Lru<SegmentKey, SegmentPointer, SegmentHash> segments_ HEADRACE_GUARDED_BY(mu_);
  std::map<BlockId, FetchPointer> fetches_ HEADRACE_GUARDED_BY(mu_);
  std::map<std::pair<uint64_t, uint64_t>, FetchPointer> queue_ HEADRACE_GUARDED_BY(mu_);
  std::map<const Assembly*, AssemblyPointer> assemblies_ HEADRACE_GUARDED_BY(mu_);
  std::deque<FetchPointer> to_write_ HEADRACE_GUARDED_BY(mu_);
  uint64_t under_way_ HEADRACE_GUARDED_BY(mu_) = 0;    // bytes of blocks, until they are written
  uint64_t outstanding_ HEADRACE_GUARDED_BY(mu_) = 0;  // reads that the store has, and writes
  uint64_t numbers_ HEADRACE_GUARDED_BY(mu_) = 0;
  std::vector<std::thread> writers_ HEADRACE_GUARDED_BY(mu_);
  std::vector<std::string> notices_ HEADRACE_GUARDED_BY(mu_);
  std::set<std::string> said_ HEADRACE_GUARDED_BY(mu_);
  std::atomic<uint64_t> hits_{0}, misses_{0}, hit_bytes_{0}, fetched_{0}, filled_{0}, damaged_{0},
      not_kept_{0};
};

}  // namespace headrace
