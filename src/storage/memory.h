// SPDX-License-Identifier: Apache-2.0
//
// MemoryStore: named byte vectors.  The reference store, and the one tests and
// fuzzing use.  Names hold '/' like paths; folders exist by the names in them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"

namespace headrace {

// Thread-safe.
class MemoryStore final : public Store {
 public:
  // Puts or replaces; a replaced file gets a later time.
  void put(const std::string& path, std::vector<std::byte> bytes);
  void put(const std::string& path, std::string_view text);
  void remove(const std::string& path);

  void read(std::span<ReadRequest> requests) const override;
  Result<FileInfo> stat(const std::string& path) const override;
  Result<std::vector<FileInfo>> list(const std::string& folder) const override;

 private:
  struct Entry {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    int64_t modified_ns = 0;
  };
  Status read_one(const ReadRequest& request) const;
  Result<Entry> find(std::string_view path) const;

  mutable Mutex mu_;
  std::map<std::string, Entry, std::less<>> files_ HEADRACE_GUARDED_BY(mu_);
  int64_t clock_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
