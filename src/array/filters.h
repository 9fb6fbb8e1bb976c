// SPDX-License-Identifier: Apache-2.0
//
// Filters: what a chunk went through before it was stored, undone in the reverse order.
// A chain is a list of them, as HDF5, NetCDF-4 and Zarr name theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array/shuffle.h"
#include "base/buffer.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

enum class ChunkFilter : uint8_t {
  kZlib,      // RFC 1950, HDF5's gzip and numcodecs' zlib
  kGzip,      // RFC 1952
  kDeflate,   // RFC 1951, bare: members of npz
  kLz4Block,  // numcodecs' lz4: u32 size, one block
  kLz4Hdf5,   // HDF5 filter 32004: u64 size, u32 block size (big-endian), blocks
  kLzf,       // h5py's LZF
  kZstd,
  kBlosc,       // version 1 frames, any inner codec
  kShuffle,     // bytes of elements side by side; parameter: element bytes
  kFletcher32,  // HDF5's checksum at the end: verified, taken off
  kCrc32c,      // Zarr's checksum at the end
  kDelta,       // numcodecs' delta; parameter: DType
};

struct FilterStep {
  ChunkFilter filter;
  uint32_t parameter = 0;
  bool operator==(const FilterStep&) const = default;
};
using FilterChain = std::vector<FilterStep>;  // in the order of writing

// The names that chain_text() gives; nothing for others.
std::optional<ChunkFilter> chunk_filter_named(std::string_view name);
// What cannot be undone is refused by name: two compressors (nothing says how much lies between
// them), a shuffle of elements without a size, delta over a type that has none.
Status check_chain(const FilterChain& chain);

// "shuffle:4 zlib", for error texts and fingerprints.
std::string chain_text(const FilterChain& chain);

// Undoes the chain.  `expected` is the size that must come out; nothing larger is allocated.
// `skipped`: bit i set means step i was left out for this chunk (HDF5's filter mask).
Status undo_filters(const FilterChain& chain, uint32_t skipped, Bytes stored, uint64_t expected,
                    Buffer& out);

// Undoes the chain for bytes [begin, begin + out.size()) of what comes out.  Blosc opens only the
// blocks that hold them; the rest opens all, into `out` itself where that is all.
Status undo_filters_in_part(const FilterChain& chain, uint32_t skipped, Bytes stored,
                            uint64_t expected, uint64_t begin, MutableBytes out,
                            NextUse next_use = NextUse::kRead);
// Whether a part costs less than the whole.
bool opens_in_part(const FilterChain& chain);

}  // namespace headrace
