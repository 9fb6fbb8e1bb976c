// SPDX-License-Identifier: Apache-2.0
//
// The metadata of a Zarr store: small JSON files in folders that are groups or arrays.
//
//   root/zarr.json           version 3: a group or an array, attributes included
//   root/t2m/zarr.json
//   root/.zgroup .zattrs     version 2
//   root/t2m/.zarray .zattrs
//   root/.zmetadata          version 2: all of these in one file ("consolidated"); version 3 has
//                            them in the root's zarr.json
//
// Of a server the consolidated metadata are believed, because one read gives them all.  On a file
// system each file is looked at: an array that somebody appended to may have outgrown them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "array/zarr_listing.h"
#include "base/json.h"
#include "storage/store.h"

namespace headrace {

// A file of metadata above this is damaged, or no Zarr.
inline constexpr uint64_t kMostZarrMetadata = uint64_t{64} << 20;

struct ZarrDocuments {
  // By their names relative to the root: "zarr.json", "deep/t2m/.zarray".  Those that consolidated
  // metadata hold are not apart: see `consolidated`.
  std::map<std::string, std::string> texts;
  // The one of `texts` that holds those of all others; "": none does.
  std::string consolidated;
  std::vector<FileInfo> looked_at;  // folders and files, as they were before they were read
};

// Whether the folder is a store, a group or an array: by the names of the files in it.
Result<bool> is_zarr(const Store& store, const std::string& folder);

// All groups and arrays below `root`.  Folders of arrays are not listed: they may have a million
// chunks.  A folder that cannot be listed is passed over.  `run` reads many at a time.
Result<ZarrDocuments> read_zarr_documents(const Store& store, const std::string& root,
                                          const RunJobs& run);

// How many metadata requests, listings and reads are worth having under way at a time.
unsigned waiting_threads(const Store& store, const std::string& path);

}  // namespace headrace
