// SPDX-License-Identifier: Apache-2.0
//
// The one place that inflates: zlib's streams and gzip's.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/inflater.h"
#include "base/status.h"

namespace headrace {

// Unpacks one zlib or gzip stream and says how many bytes of `out` it filled; its checksum is
// verified.  Bad bytes, and more than fits, are kCorrupt; a build without the library says so.
Result<size_t> unpack_zlib(Bytes packed, MutableBytes out);

// Of one zlib stream, or of gzip members one after the other.
Result<std::unique_ptr<Inflater>> zlib_inflater();

}  // namespace headrace
