// SPDX-License-Identifier: Apache-2.0
//
// What the metadata of one Zarr array say, of either version.  No data is read, and no store is
// asked: the documents may come from a folder, a server or a zip.
//
//   root/t2m/.zarray .zattrs     version 2
//   root/t2m/zarr.json           version 3, attributes included
#pragma once

#include <optional>
#include <string>

#include "array/file_array.h"
#include "array/zarr_listing.h"
#include "array/zarr_shards.h"
#include "base/json.h"

namespace headrace {

struct ZarrMetadata {
  // Without places.  `why`: it cannot be read.  `by_python`: zarr-python may read it; "texts" where
  // it holds texts of any length, else the reason why nothing else does.
  FileArray array;
  ZarrKeys keys;  // of the files that are chunks, or shards
  std::optional<ShardForm> shard;
};

// `attributes`: of .zattrs; null where there is none, and of version 3, whose document holds them.
Result<ZarrMetadata> zarr_metadata(std::string name, const Json& document, const Json* attributes);

// JSON as a tree; null where that has no words for it.
Tree tree_of(const Json& value);

}  // namespace headrace
