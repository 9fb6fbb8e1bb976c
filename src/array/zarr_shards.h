// SPDX-License-Identifier: Apache-2.0
//
// Zarr 3's shards: a file holds many chunks, and an index of them at its end or beginning.
//
//   | chunk | chunk | … | u64 offset, u64 bytes, of each chunk of the shard | u32 CRC-32C |
//
// Little-endian; both numbers 2^64 - 1: the chunk is not there.
#pragma once

#include <string>
#include <vector>

#include "array/array_source.h"
#include "array/zarr_listing.h"
#include "storage/store.h"

namespace headrace {

struct ShardForm {
  Extents shards;     // the grid of shards
  Extents per_shard;  // chunks of a shard along each axis
  Extents chunks;     // the grid of chunks; the last shards may go over its end
  bool at_start = false;
  bool is_checked = true;  // a CRC-32C follows
};

// Reads the indexes of all shards, by many jobs.  `files`: the path of each of `shards`.  What
// comes out are the places of the grid of chunks, each in the file of its shard.
Result<std::vector<ChunkPlace>> read_shard_indexes(const ShardForm& form,
                                                   const std::vector<ZarrFile>& shards,
                                                   const std::vector<std::string>& files,
                                                   const Store& store, const RunJobs& run);

}  // namespace headrace
