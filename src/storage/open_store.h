// SPDX-License-Identifier: Apache-2.0
//
// From a URL to the store that has it: the only place that knows which stores there are.
//
//   HEADRACE_ASSIGN(const OpenedUrl at, open_store("s3://bucket/train.tar"));
//   at.store->read_all(at.path)
//
// A new store is one .cc with a <name>_stores row and one line in stores.inc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/sink.h"
#include "storage/store.h"
#include "storage/store_options.h"

namespace headrace {

// A row of the table.
struct StoreKind {
  std::string_view name;  // as in stores.inc
  std::span<const std::string_view> schemes;
  std::string_view purpose;   // for the user, in a few words
  bool mixes_schemes = true;  // one store reads what is of any of them
  Result<std::shared_ptr<const Store>> (*make)(const StoreOptions& options,
                                               std::string_view scheme);
  // Null: what lies there is only read.  An object appears when its sink is closed.
  Result<std::unique_ptr<Sink>> (*write)(const StoreOptions& options,
                                         const std::string& path) = nullptr;
  Status (*remove)(const StoreOptions& options, const std::string& path) = nullptr;
};

std::span<const StoreKind* const> all_stores();

struct OpenedUrl {
  std::shared_ptr<const Store> store;  // a new one: who opens anew sees what lies there now
  std::string path;                    // as the store takes it
};

// Plain paths and file:// are of the local file system, whose paths have no scheme; of all others
// the path is the URL.  An unknown scheme is kUnsupported: the text lists the known ones.
Result<OpenedUrl> open_store(std::string_view url,
                             const StoreOptions& options = current_store_options());

// The one store that all of `urls` lie in.
Result<std::shared_ptr<const Store>> store_of_all(
    std::span<const std::string> urls, const StoreOptions& options = current_store_options());

// Where a URL or path is written; kUnsupported where its store is only read.  A local one is as
// file_sink() writes it.
Result<std::unique_ptr<Sink>> open_sink(const std::string& url,
                                        const StoreOptions& options = current_store_options());
// Whether open_sink() takes it.
Status can_write(const std::string& url);
// All at once.
Status write_url(const std::string& url, Bytes data,
                 const StoreOptions& options = current_store_options());
// OK where there is nothing.
Status remove_url(const std::string& url, const StoreOptions& options = current_store_options());

// Of a scheme that the table does not have; kUnsupported where nobody has it.  Told once, by the
// Python face, which knows fsspec.
using OtherStores = Result<std::shared_ptr<const Store>> (*)(std::string_view scheme);
void set_other_stores(OtherStores make);

// For tests: while it lives, `scheme`:// is `store`.  Thread-safe.
class ScopedStore {
 public:
  ScopedStore(std::string scheme, std::shared_ptr<const Store> store);
  ~ScopedStore();
  ScopedStore(const ScopedStore&) = delete;
  ScopedStore& operator=(const ScopedStore&) = delete;

 private:
  const std::string scheme_;
};

}  // namespace headrace
