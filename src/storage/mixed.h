// SPDX-License-Identifier: Apache-2.0
//
// Local files, and files of servers that they name: a list on this disk of pictures in a bucket.
// Each path is read from the store of its scheme, which is opened when it is first asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"
#include "storage/store_options.h"

namespace headrace {

// Thread-safe.
class MixedStore final : public Store {
 public:
  explicit MixedStore(StoreOptions options);

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  std::optional<Pin> pin(std::string_view path, uint64_t offset, uint64_t length) const override;
  void cancel(const ReadGroup& group) const override;
  StoreCost cost(const std::string& path) const override;
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override;
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override;

 private:
  Result<std::shared_ptr<const Store>> store_of(std::string_view path) const;

  const std::shared_ptr<const Store> local_;
  StoreOptions options_;  // as made
  mutable Mutex mu_;
  mutable std::map<std::string, std::shared_ptr<const Store>, std::less<>> opened_
      HEADRACE_GUARDED_BY(mu_);  // by scheme
};

}  // namespace headrace
