// SPDX-License-Identifier: Apache-2.0
//
// A stretch of an array cut into chunks, packed, and written.
//
//   slab: begins and ends where chunks (or shards) do, or with the array
//   +----+----+----+
//   | 0  | 1  | 2  |   each padded to a whole chunk with the fill value, packed on its own thread
//   +----+----+----+
#pragma once

#include <string>
#include <vector>

#include "array/encode.h"
#include "array/region.h"
#include "base/status.h"
#include "pack/journal.h"

namespace headrace {

// An array as it will be stored, last axis fastest, little-endian.
struct ArrayTarget {
  Extents shape;
  Extents chunk;                // of the same rank
  Extents shard = {};           // whole chunks that lie in one file; empty: each in its own
  std::vector<std::byte> fill;  // one element; chunks that hold nothing else are not stored
  ChunkEncoding encoding = {};  // encoding.item: bytes of an element
};

struct EncodedChunk {
  Extents at;  // its place in the grid
  Buffer bytes = {};
  bool is_fill = false;
};

Status validate(const ArrayTarget& target);

// All chunks of the slab, last axis fastest.  `data` holds the slab's elements.
Result<std::vector<EncodedChunk>> encode_chunks(const ArrayTarget& target, const Region& slab,
                                                Bytes data, unsigned threads);

// The same as files of a Zarr 3 array: `folder`/`name`/c/0/1/2, a chunk or a shard each, durable.
// Shards have their index behind them (sharding_indexed, with a checksum).  What holds nothing but
// the fill value has no file.  Names in the result begin with `name`.
Result<std::vector<PackedFile>> write_chunk_files(const ArrayTarget& target,
                                                  const std::string& folder,
                                                  const std::string& name, const Region& slab,
                                                  Bytes data, unsigned threads);

}  // namespace headrace
