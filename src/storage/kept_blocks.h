// SPDX-License-Identifier: Apache-2.0
//
// KeptBlocks: what was read of a server while its index was made, kept for the first epoch, so that
// no byte is fetched twice.  A block goes when nearly all of it was read again, and all go after
// some minutes: it is no cache (storage/cache/ is).
//
//   auto kept = std::make_shared<const KeptBlocks>(s3, most_bytes);
//   kept->keep(path, offset, version, memory);      // by who reads for the index
//   kept->read(requests);                           // from memory, else from s3
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/buffer.h"
#include "base/mutex.h"
#include "storage/store.h"

namespace headrace {

// Thread-safe.
class KeptBlocks final : public StoreWrapper {
 public:
  static constexpr uint64_t kLongest = 300'000'000'000;  // ns from the last keep()

  KeptBlocks(std::shared_ptr<const Store> inner, uint64_t most_bytes)
      : StoreWrapper(std::move(inner)), most_bytes_(most_bytes) {}

  // What there is no room for is forgotten.
  void keep(const std::string& path, uint64_t offset, const std::string& version,
            std::shared_ptr<const Buffer> memory) const;
  uint64_t held_bytes() const;

  void read(std::span<ReadRequest> requests) const override;

 private:
  struct Kept {
    std::shared_ptr<const Buffer> memory;
    std::string version;
    uint64_t used_bytes = 0;
  };
  using Blocks = std::map<std::pair<std::string, uint64_t>, Kept>;  // by path and offset

  bool find(const ReadRequest& request, std::vector<std::shared_ptr<const Buffer>>& found,
            uint64_t& first, std::string& version) const;
  bool serve(ReadRequest& request) const;
  // Of a block that was found: [from, to) of the file was read.
  void use(Blocks::iterator block, uint64_t from, uint64_t to) const HEADRACE_REQUIRES(mu_);

  const uint64_t most_bytes_;
  mutable Mutex mu_;
  mutable Blocks blocks_ HEADRACE_GUARDED_BY(mu_);
  mutable uint64_t bytes_ HEADRACE_GUARDED_BY(mu_) = 0;
  mutable uint64_t kept_ns_ HEADRACE_GUARDED_BY(mu_) = 0;
};

}  // namespace headrace
