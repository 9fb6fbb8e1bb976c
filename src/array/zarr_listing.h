// SPDX-License-Identifier: Apache-2.0
//
// Which chunks of a Zarr array are there: files whose names say where in the grid they belong.
//
//   grid 20 × 3      folder/c/19/2   nested: lead "c", separator '/'
//                    folder/19.2     flat: no lead, separator '.'
//
// Any other file or folder is none of the array's business and is passed over: metadata, files that
// a writer has not renamed yet, names with leading zeros, indexes past the end of the grid.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array/region.h"
#include "base/status.h"
#include "storage/store.h"

namespace headrace {

// Calls job(0), …, job(count - 1), on threads or not.
using RunJobs = std::function<Status(size_t count, const std::function<Status(size_t)>& job)>;

struct ZarrKeys {
  Extents grid;      // chunks along each axis
  std::string lead;  // "c" where keys begin with it; else empty
  char separator = '/';
};

// The key of one chunk, counted with the last axis fastest.
std::string zarr_key(const ZarrKeys& keys, uint64_t chunk);

struct ZarrFile {
  uint64_t chunk = 0;
  uint64_t bytes = 0;
  bool operator==(const ZarrFile&) const = default;
};

// One index as keys have it: no sign, no leading zero, within the grid.
std::optional<uint64_t> zarr_index(std::string_view text, int64_t extent);
// The number of the chunk whose indexes are joined by '.'.
std::optional<uint64_t> zarr_chunk_named(std::string_view name, const ZarrKeys& keys);

// The chunks that are there, in the order of their numbers.  Folders are listed, and sizes asked
// for, by many jobs.  A link to a folder is followed, and refused where it leads to a folder
// above it.  A folder that cannot be listed is an error: its chunks would pass for missing ones.
// `looked_at`: the folders that a new chunk would change, as they were before they were listed.
Result<std::vector<ZarrFile>> list_zarr_chunks(const Store& store, const std::string& folder,
                                               const ZarrKeys& keys, const RunJobs& run,
                                               std::vector<FileInfo>* looked_at = nullptr);
// Likewise, of storage that is no local file system.  Where the store does not list the array's
// folder (a web server) it is asked for every chunk.
Result<std::vector<ZarrFile>> list_far_chunks(const Store& store, const std::string& folder,
                                              const ZarrKeys& keys, const RunJobs& run);

}  // namespace headrace
