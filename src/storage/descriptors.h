// SPDX-License-Identifier: Apache-2.0
//
// Descriptors: the open files of a store, least recently used out first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/per_process.h"
#include "base/status.h"
#include "storage/lru.h"

namespace headrace {

// Owns one descriptor.  Immutable, hence thread-safe: pread() has no cursor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }
  // Whether the file lies in memory (tmpfs); asked of the system once.
  bool is_memory() const;

 private:
  const int fd_;
  mutable std::atomic<int> is_memory_{-1};  // -1: not asked yet
};

using OpenFile = std::shared_ptr<const Descriptor>;

// Opens for reading, close-on-exec, retrying EINTR.
Result<OpenFile> open_descriptor(const std::string& path);

// Thread-safe, and safe in a forked child.  What open() hands out stays open while anyone holds it,
// evicted or not.
class Descriptors {
 public:
  explicit Descriptors(size_t capacity);
  Result<OpenFile> open(std::string_view path) const;
  // Closes what is open of the path; those who hold it go on.
  void forget(std::string_view path) const;
  // The same, unless it is the file that `device` and `node` say the path names now.
  void forget_unless(std::string_view path, uint64_t device, uint64_t node) const;

 private:
  struct Table {
    explicit Table(size_t capacity) : open(capacity) {}
    Mutex mu;
    Lru<std::string, OpenFile, TextHash> open HEADRACE_GUARDED_BY(mu);
  };
  const PerProcess<Table> table_;
};

}  // namespace headrace
