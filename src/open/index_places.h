// SPDX-License-Identifier: Apache-2.0
//
// Where indexes are kept when they cannot lie beside the data, and who builds them
// when several processes want them at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "storage/store.h"

namespace headrace {

// A folder of this user's own for sidecars that cannot lie beside their shards:
// $HEADRACE_CACHE; else headrace-<uid>, mode 0700, in $SLURM_TMPDIR, $TMPDIR or /tmp; the
// home directory, which may have a quota, only when none of these can be written.  Made if
// need be.  One that another user owns, or may write, is passed over.
Result<std::string> cache_folder();
// Like cache_folder(), but makes nothing; "" where there is none yet.
std::string existing_cache_folder();

// An index is of a file while its size and time are.  A store that has a better tag than these (an
// ETag) has it looked at in place of the time, which may be missing or coarse there.
void stamp_version(FileInfo& info);
// What stands there then is no time of this or the next hundred years.
inline constexpr int64_t kVersionStamp = int64_t{1} << 62;

// The sidecar of `shard` in a cache folder: its name after a hash of its absolute path or URL.
std::string cached_sidecar(const std::string& folder, const FileInfo& shard);

// Has the index of `shard` written beside it or, where that cannot be, to the cache folder. Returns
// what the user is told: "" where it lies beside the data.
std::string keep_index(const FileInfo& shard,
                       const std::function<Status(const std::string& path)>& write);

// Held while indexes of `path` (a file or folder that is there) are built.  Another process
// that asks waits, until the holder is done or gone, or `cancel` is set.  Locks the data
// itself (flock), so that nothing is left behind; where the file system has no locks, nobody
// waits.  For data that are not on this machine it locks a file in the cache folder, and removes it
// in the end: processes of other machines build for themselves.
class BuildLock {
 public:
  static Result<std::unique_ptr<BuildLock>> acquire(const std::string& path,
                                                    const std::atomic<bool>* cancel);
  ~BuildLock();
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  explicit BuildLock(int fd, std::string made = {}) : fd_(fd), made_(std::move(made)) {}
  static Result<bool> wait_for(int fd, const std::atomic<bool>* cancel);
  static Result<std::unique_ptr<BuildLock>> acquire_in_cache(const std::string& url,
                                                             const std::atomic<bool>* cancel);
  const int fd_;            // -1: no lock to be had
  const std::string made_;  // to be removed in the end; "": nothing
};

}  // namespace headrace
