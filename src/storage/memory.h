// SPDX-License-Identifier: Apache-2.0
//
// MemoryStore: named byte vectors.  The reference store, and the one tests and
// fuzzing use: it stands for a disk, and so lends nothing.  Names hold '/' like paths; folders
// exist by the names in them.
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
  // Listings come in pages of so many entries.
  explicit MemoryStore(size_t page_entries = 1000) : page_entries_(page_entries) {}

  // Puts or replaces; a replaced file gets a later time.
  void put(const std::string& path, std::vector<std::byte> bytes);
  void put(const std::string& path, std::string_view text);
  void remove(const std::string& path);

  void read(std::span<ReadRequest> requests) const override;
  StoreCost cost(const std::string& path) const override;
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override;

 private:
  struct Entry {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    int64_t modified_ns = 0;
  };
  Status read_one(ReadRequest& request) const;
  Result<FileInfo> stat_one(const std::string& path) const;
  Result<Entry> find(std::string_view path) const;

  const size_t page_entries_;

  mutable Mutex mu_;
  std::map<std::string, Entry, std::less<>> files_ HEADRACE_GUARDED_BY(mu_);
  int64_t clock_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
