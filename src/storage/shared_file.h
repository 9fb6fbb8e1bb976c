// SPDX-License-Identifier: Apache-2.0
//
// SharedFile: memory under a name that processes share (shared_use.h), as a file that is mapped.
// Its content is written to PLACE.part and renamed, so that a file of that name is complete.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"
#include "storage/shared_use.h"

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
  bool was_there() const { return use_->was_there(); }

 private:
  SharedFile() = default;

  std::byte* memory_ = nullptr;
  size_t size_ = 0;
  std::unique_ptr<SharedUse> use_;
};

}  // namespace headrace
