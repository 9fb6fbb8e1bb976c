// SPDX-License-Identifier: Apache-2.0
//
// What the metadata of one file or folder say, read through its store.  No data is read.
#pragma once

#include <string>
#include <vector>

#include "array/file_array.h"
#include "array/zarr_listing.h"
#include "storage/store.h"

namespace headrace {

// A grid above this is a damaged file, or one that should not be read chunk by chunk.
inline constexpr uint64_t kMostChunks = uint64_t{1} << 27;

struct OpenedFile {
  std::vector<FileArray> arrays;
  Tree attributes = Tree::map();    // of the file, or the group, itself
  std::vector<FileInfo> looked_at;  // files and folders whose change would show that this is old
};

// The one array of a .npy file: "data", its axes "axis0", "axis1", …
Result<OpenedFile> open_npy(const Store& store, const std::string& path);
// All variables of a classic NetCDF file.
Result<OpenedFile> open_netcdf_classic(const Store& store, const std::string& path);

// The arrays of a Zarr store, or of a group of it, and where their chunks lie.  Codecs and texts
// that headrace in Python reads through zarr-python have a reason in `why`.
Result<OpenedFile> open_zarr(const Store& store, const std::string& root, const std::string& group,
                             const RunJobs& run);

// Chunks along each axis; kCorrupt where shape and chunk do not fit each other.
Result<Extents> chunk_grid(const std::string& name, const Extents& shape, const Extents& chunk);
// "axis0", "axis1", …
std::vector<std::string> plain_dims(size_t axes);

}  // namespace headrace
