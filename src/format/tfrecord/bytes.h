// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a TFRecord file in order, whether it is packed (gzip, zlib) or not.
#pragma once

#include <memory>
#include <vector>

#include "format/file_bytes.h"
#include "format/format.h"
#include "format/tfrecord/example.h"

namespace headrace {

// The file unpacked, if its first bytes say that it is packed.
Result<std::unique_ptr<FileBytes>> open_record_bytes(const ShardInput& shard);

// Whether these first bytes of a file are a gzip or zlib stream, as TensorFlow writes them.
bool is_packed(Bytes head);

// The unit that a packed file is: all of it unpacked, and behind it, where `with_arrays`, the
// number lists of its Examples as arrays (int64, float32), in order, without those floats that
// lie in one run anyway.  Exactly as long as `decoded` is.
Status open_packed_records(Bytes stored, bool with_arrays, MutableBytes decoded);
// How many bytes the list takes there; 0: it has no place there.
uint64_t array_bytes(const Feature& feature);

}  // namespace headrace
