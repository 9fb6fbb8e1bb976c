// SPDX-License-Identifier: Apache-2.0
//
// The index.json of an MDS folder: which shards there are, in order, and how long each is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "format/format.h"
#include "storage/store.h"

namespace headrace {

struct MdsIndexShard {
  std::string raw;  // its name in the folder
  std::string zip;  // compressed; "" where it is not
  std::string compression;
  uint64_t raw_bytes = 0;
  uint64_t zip_bytes = 0;
  uint64_t samples = 0;
};

// Immutable, hence thread-safe.
struct MdsIndex {
  std::vector<MdsIndexShard> shards;
  std::unordered_map<std::string, size_t> named;  // by raw and by zip

  const MdsIndexShard* find(std::string_view name) const;
};

// Whether it is one of MDS at all: other things are called index.json too.
bool is_mds_index(const Json& json);
Result<MdsIndex> parse_mds_index(const Json& json);

// Of the folder that `shard` lies in; null where there is none, or it is none of MDS.
Result<std::shared_ptr<const MdsIndex>> mds_index_beside(const Store& store,
                                                         const std::string& shard);

// Format::claim.
Result<std::vector<std::string>> claim_mds_folder(const Store& store, const std::string& folder,
                                                  std::span<const FileInfo> entries);

// Format::finish_folder.
Status finish_mds_folder(const std::string& folder, std::span<const WrittenShard> shards);

}  // namespace headrace
