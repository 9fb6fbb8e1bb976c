// SPDX-License-Identifier: Apache-2.0
//
// VersionedStore: a store around a store that reads files as they were when the data set was
// opened.  A version goes out with every request, so a file that was replaced meanwhile fails with
// kCorrupt, and its bytes never mix with those of an index that is not its own.
//
//   auto files = std::make_shared<VersionedStore>(store);
//   files->expect(info);                      // from stat()
//   files->read(requests)                     // of that version, or kCorrupt
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "storage/lru.h"
#include "storage/store.h"

namespace headrace {

// Thread-safe.
class VersionedStore final : public StoreWrapper {
 public:
  explicit VersionedStore(std::shared_ptr<const Store> inner) : StoreWrapper(std::move(inner)) {}

  // From now on.  Nothing where the store gave no version.
  void expect(const FileInfo& file) const;

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;

 private:
  struct Stripe {
    mutable Mutex mu;
    std::unordered_map<std::string, std::string, TextHash, std::equal_to<>> versions
        HEADRACE_GUARDED_BY(mu);
  };
  Stripe& stripe_of(std::string_view path) const;
  void stamp(ReadRequest& request) const;

  mutable std::array<Stripe, 16> stripes_;  // by path: many threads read
};

}  // namespace headrace
