// SPDX-License-Identifier: Apache-2.0
//
// SharedFile: memory under a name that processes share, made once and removed by the last user;
// held.h tells how.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"

namespace headrace {

// Immutable, hence thread-safe.
class SharedFile {
 public:
  struct Wish {
    std::string folder;
    Hash128 name;
    uint64_t bytes = 0;                                // of the content
    std::function<Status(MutableBytes content)> fill;  // called at most once
    const std::atomic<bool>* cancel = nullptr;
  };
  // kExhausted where the folder has no room, or no such file can be made in it.
  static Result<std::unique_ptr<SharedFile>> open(const Wish& wish);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  Bytes content() const;
  bool was_there() const { return was_there_; }

 private:
  SharedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static Result<std::unique_ptr<SharedFile>> open_complete(const std::string& path,
                                                           const Wish& wish);
  static Result<std::unique_ptr<SharedFile>> make(const std::string& path, const Wish& wish);
  Status map(const Wish& wish);
  // Removes the file if no other process uses it.  Once.
  void let_go();
  friend struct AtExit;

  const std::string path_;
  int fd_ = -1;
  std::byte* memory_ = nullptr;
  size_t size_ = 0;
  bool was_there_ = true;
  int pid_ = 0;  // a forked child shares the lock and must not touch it
};

}  // namespace headrace
