// SPDX-License-Identifier: Apache-2.0
//
// ShardIndexer: the part of each shard of a data set, from a sidecar or made now.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "format/registry.h"
#include "open/open.h"
#include "storage/open_store.h"

namespace headrace {

// Whether two shards can be of one data set: one format, and where there are classes, the same.
Status belong_together(const Part& a, const std::string& a_path, const Part& b,
                       const std::string& b_path);

// Thread-safe: shards are indexed in parallel.
class ShardIndexer {
 public:
  // `kept`, which may be null, gets what is read of servers for the index.
  ShardIndexer(std::shared_ptr<const Store> store, const OpenOptions& options,
               std::shared_ptr<const KeptBlocks> kept = nullptr);

  // Size and time of every path; a missing one is an error that names it.
  Result<std::vector<FileInfo>> stat_all(const std::vector<std::string>& paths) const;
  // The part kept beside the shard or in the cache, if it is current; else null.
  PartPointer find_kept(const FileInfo& shard);
  // Null becomes what find_kept() gives, for every shard.
  Status find_all_kept(const std::vector<FileInfo>& shards, std::vector<PartPointer>& parts);
  // Makes the part; as one of so many at a time.
  Result<PartPointer> make(const FileInfo& shard, size_t together) const;
  // Threads that make so many parts: of a server they wait more than they compute.
  unsigned threads_for(std::span<const FileInfo> shards) const;
  // Beside the shard, else in the cache, else nowhere; what a user should know is noted, once.
  void keep(const FileInfo& shard, PartPointer& part);
  // Makes and keeps every part that is null, on all threads, with progress.
  Status make_missing(const std::vector<FileInfo>& shards, std::vector<PartPointer>& parts);

  std::vector<std::string> notices() const;

 private:
  Result<const Format*> format_of_folder(const std::string& folder) const;
  uint64_t memory_left() const;
  // Where the sidecar was written, if anywhere.
  std::optional<OpenedUrl> write_somewhere(const FileInfo& shard, const Part& part);
  void note_once(std::string text);

  const std::shared_ptr<const Store> store_;
  const OpenOptions& options_;
  const std::shared_ptr<const KeptBlocks> kept_;
  const unsigned threads_;
  const OpenedUrl cache_;  // an existing cache folder, or ""
  std::atomic<uint64_t> memory_used_{0};
  std::atomic<bool> looked_beside_{false};  // of data on a server, once
  mutable Mutex mu_;
  std::vector<std::string> notices_ HEADRACE_GUARDED_BY(mu_);
};

}  // namespace headrace
