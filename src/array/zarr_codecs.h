// SPDX-License-Identifier: Apache-2.0
//
// Zarr's codecs, of either version, as filters of chunks.
//
//   version 2   {"id": "zlib", "level": 5}
//   version 3   {"name": "gzip", "configuration": {"level": 5}}, "numcodecs." before some names
#pragma once

#include "array/file_array.h"
#include "array/zarr_types.h"
#include "base/json.h"

namespace headrace {

// Of version 2: filters, then the compressor.  kUnsupported with the reason, where zarr-python is
// needed.
Status take_codecs2(const Json* filters, const Json* compressor, const ZarrType& type,
                    FileArray& out);
// Of version 3.  `shard`: the configuration of shards where there are some, else null.
Status take_codecs3(const Json& codecs, const ZarrType& type, FileArray& out, const Json*& shard);

}  // namespace headrace
