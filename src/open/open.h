// SPDX-License-Identifier: Apache-2.0
//
// From what a user names to a Source: expand, recognise, index what is not indexed.
//
//   urls ──► shards ──► sidecar current?  ── yes ──► parts ──► IndexedSource
//                             └─ no: lock, look again, index in parallel, keep ─┘
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/format.h"
#include "index/indexed_source.h"
#include "storage/cache/cache.h"
#include "storage/store_options.h"

namespace headrace {

struct IndexProgress {
  uint64_t shards_done = 0;
  uint64_t shards = 0;
  uint64_t samples = 0;  // of the shards that are done
};

struct OpenOptions {
  std::shared_ptr<const Store> store = nullptr;    // null: the one that the urls are of
  StoreOptions storage = current_store_options();  // how that one is opened
  CacheOptions cache = {};                         // what is put around it
  std::string format = {};                         // by name; "": found out
  std::string root = {};      // of the paths in a list; "": the folder of the list
  std::string index = {};     // a folder that build_index() made; "": sidecars
  bool keep_sidecars = true;  // false: neither read nor written (stores that are not files)
  unsigned threads = 0;       // that index; 0: as many as cores
  uint64_t memory_bytes = uint64_t{64}
                          << 20;  // parts that are kept whole; the others are read by groups
  std::function<void(const IndexProgress&)> progress = {};  // from any thread, one at a time
  const std::atomic<bool>* cancel = nullptr;
};

struct Opened {
  std::shared_ptr<const IndexedSource> source;  // shards().name(i), .bytes(i), .samples(i)
  std::string format;
  uint64_t shards_built = 0;         // indexed now
  uint64_t shards_reused = 0;        // by an index that was there
  std::vector<std::string> classes;  // names of the class numbers, of class folders
  std::vector<std::string> notices;  // for the user, once
  std::shared_ptr<const CacheStore> cache = nullptr;  // of options.cache
};

inline constexpr uint64_t kMaxImplicitShards = 1000;

// More than 1,000 shards without an index are kInvalidArgument: the text names the command.
Result<Opened> open_source(const std::vector<std::string>& urls, const OpenOptions& options = {});

// Indexes all of `urls` into the folder `to`, for open_source(urls, {.index = to}).
// Current sidecars are taken over.  What is there is replaced, the manifest last.
Status build_index(const std::vector<std::string>& urls, const std::string& to,
                   const OpenOptions& options = {});

}  // namespace headrace
