// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a TFRecord file in order, whether it is packed (gzip, zlib) or not.
#pragma once

#include <memory>
#include <vector>

#include "base/zlib.h"
#include "format/format.h"
#include "format/header_window.h"
#include "format/tfrecord/example.h"

namespace headrace {

inline constexpr uint64_t kUnknownSize = ~uint64_t{0};

// One thread at a time.
class RecordBytes {
 public:
  virtual ~RecordBytes() = default;
  // Of all bytes; kUnknownSize while only unpacking would tell.
  virtual uint64_t size() const = 0;
  // Bytes from `offset` on, fewer than `length` where they end.  Offsets only grow; valid until
  // the next call.
  virtual Status bytes(uint64_t offset, uint64_t length, Bytes& out) = 0;
};

// The file unpacked, if its first bytes say that it is packed.
Result<std::unique_ptr<RecordBytes>> open_record_bytes(const ShardInput& shard);

// Whether these first bytes of a file are a gzip or zlib stream, as TensorFlow writes them.
bool is_packed(Bytes head);
// The first bytes of what is packed, as many as `out` holds at most.
Bytes unpack_head(Bytes head, MutableBytes out);

// The unit that a packed file is: all of it unpacked, and behind it, where `with_arrays`, the
// number lists of its Examples as arrays (int64, float32), in order, without those floats that
// lie in one run anyway.  Exactly as long as `decoded` is.
Status open_packed_records(Bytes stored, bool with_arrays, MutableBytes decoded);
// How many bytes the list takes there; 0: it has no place there.
uint64_t array_bytes(const Feature& feature);

}  // namespace headrace
