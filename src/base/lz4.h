// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows liblz4.
#pragma once

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// Unpacks one raw block (no frame around it) and says how many bytes of `out` it filled.
// Bad bytes, and more than fits, are kCorrupt; a build without the library says so.
Result<size_t> unpack_lz4(Bytes packed, MutableBytes out);
// The same for LZ4 frames: one, or several one after the other.
Result<size_t> unpack_lz4_frame(Bytes packed, MutableBytes out);

}  // namespace headrace
