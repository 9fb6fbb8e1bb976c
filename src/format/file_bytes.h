// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a shard from front to back, whether the file is compressed as a whole (gzip, zlib,
// zstd, xz) or not.  A compressed file is one unit: its index holds places in the unpacked bytes,
// and reading a sample unpacks all of it, once for all samples that are in use.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/inflater.h"
#include "format/format.h"

namespace headrace {

enum class Compression : uint8_t { kNone, kZlib, kGzip, kZstd, kXz };

// By the first bytes of a file.
Compression compression_of(Bytes head);

inline constexpr uint64_t kUnknownSize = ~uint64_t{0};

// One thread at a time.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  // Of all bytes; kUnknownSize where only unpacking would tell.
  virtual uint64_t size() const = 0;
  // How far the bytes are known to go: all of a plain file, what was unpacked so far of others.
  virtual uint64_t seen() const = 0;
  // Bytes from `offset` on, fewer than `length` where they end.  Offsets only grow; valid until
  // the next call.
  virtual Status bytes(uint64_t offset, uint64_t length, Bytes& out) = 0;
};

// The bytes of `shard` as they lie, or unpacked.
Result<std::unique_ptr<FileBytes>> open_file_bytes(const ShardInput& shard,
                                                   Compression compression);

// The first bytes of what is packed in gzip or zlib, as many as `out` holds at most.  Of zstd and
// xz none: their first block is larger than `head`.
Bytes unpack_head(Bytes head, MutableBytes out);

// What the file says it unpacks to, where it says so at its ends; a guess that may be wrong.
uint64_t stated_size(Compression compression, Bytes first, Bytes last);

// All of `stored`, into exactly `out`: anything else is not what was indexed.
Status unpack_whole(Bytes stored, MutableBytes out);
// Likewise, into as many bytes as it gives; `out` is then what is left of it.
Status unpack_into(Bytes stored, MutableBytes& out);

// Whether a unit of so many unpacked bytes can be held by this process at all: an error that says
// how to unpack the file at `path` where not.
Status check_unit_fits(uint64_t bytes, Compression compression, std::string_view path);
// What a user should hear of a file of so many unpacked bytes; "" where it is small.
std::string large_unit_notice(uint64_t bytes, Compression compression);

}  // namespace headrace
