// SPDX-License-Identifier: Apache-2.0
//
// CacheFolder: the folder of a cache, shared by all processes of a user on a machine.
//
//   DIR/headrace-cache     says that the folder is ours, and how large blocks and segments are
//   DIR/usage              bytes in use, as a number; under a lock (flock) while it is changed
//   DIR/evicting           locked by the one process that makes room
//   DIR/tmp/               files that are being made: a name appears in data/ complete
//   DIR/data/ab/abcd…-N    segment N of an object (storage/cache/segment.h)
//
// The folder has mode 0700 and is this user's.  One that holds other things is refused, and only
// files of these names are ever removed.  Locks end with their process.  The number in `usage` may
// be too high after a kill, and too low by the blocks that other processes fetch while one counts;
// whoever makes room counts anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/cache/segment.h"

namespace headrace {

struct CacheOptions {
  std::string folder;      // "": no cache
  uint64_t bytes = 0;      // at most so many; 0: what keep_free leaves
  int64_t keep_free = -1;  // bytes that stay free on its file system; -1: a twentieth of it
  std::string scope = {};  // where the same URL is another object: of which server it is
};

struct CachedFile {
  std::string path;
  Hash128 object;
  uint64_t bytes = 0;  // on the disk
  int64_t used_ns = 0;
};

// Objects that this process reads: what is cached of them is not removed for more of the same.  In
// an epoch every sample is wanted once, so what is there is worth as much as what would take its
// place; the oldest of everything else goes.  Thread-safe.
class CacheUsers {
 public:
  static void add(const Hash128& object);
  static void remove(const Hash128& object);
  static bool has(const Hash128& object);
};

// Thread-safe.
class CacheFolder {
 public:
  // Makes the folder where there is none.  A notice says what is not as hoped.
  static Result<std::unique_ptr<CacheFolder>> open(const CacheOptions& options);
  // Likewise, but the folder must be there: for who lists, checks or clears it.
  static Result<std::unique_ptr<CacheFolder>> open_existing(const std::string& folder);

  const std::string& path() const { return path_; }
  const std::string& scope() const { return scope_; }
  const CacheShape& shape() const { return shape_; }
  uint64_t most_bytes() const { return most_bytes_; }
  bool is_read_only() const { return is_read_only_; }
  const std::vector<std::string>& notices() const { return notices_; }

  std::string segment_path(const Hash128& object, uint64_t number) const;
  // A name for a file that is being made; no other process has it.
  std::string temporary_path() const;

  // Room for so many bytes more: true when they are counted.  Removes what was used longest ago
  // where that is needed and nobody else is at it.
  bool reserve(uint64_t bytes) const;
  // Of reserve(), where nothing came of it.
  void give_back(uint64_t bytes) const;
  // Of reserve(): they are in a file now, where whoever counts anew finds them.
  void written(uint64_t bytes) const { reserved_.fetch_sub(bytes); }

  // All segments, and what killed processes left in tmp/ removed.
  Result<std::vector<CachedFile>> scan() const;
  // Removes a file of ours and what it took from the count.
  bool remove(const CachedFile& file) const;
  // The folder itself, where nothing of anybody else is in it and nothing of ours is left.
  void remove_empty() const;
  uint64_t evicted_bytes() const { return evicted_.load(); }

 private:
  explicit CacheFolder(std::string path) : path_(std::move(path)) {}
  Status adopt(const CacheOptions& options);
  Status read_marker();
  Status write_marker(const CacheOptions& options);
  void set_limits(const CacheOptions& options);
  uint64_t free_bytes() const;
  uint64_t shortage(uint64_t bytes) const;
  bool change_usage(int64_t by, bool within_limit) const;
  bool evict(uint64_t bytes) const;

  const std::string path_;
  std::string scope_;
  CacheShape shape_;
  uint64_t most_bytes_ = ~uint64_t{0};
  uint64_t keep_free_ = 0;
  bool is_read_only_ = false;
  std::vector<std::string> notices_;
  mutable std::atomic<uint64_t> reserved_{0};  // and not yet in a file
  mutable std::atomic<uint64_t> evicted_{0};
  mutable std::atomic<uint64_t> full_until_ns_{0};  // no use in asking again before
};

}  // namespace headrace
