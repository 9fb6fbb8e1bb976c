// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows libzstd.
#pragma once

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// Unpacks one frame, or several one after the other, and says how many bytes of `out` it filled.
// Bad bytes, and more than fits, are kCorrupt; a build without the library says so.
Result<size_t> unpack_zstd(Bytes packed, MutableBytes out);

}  // namespace headrace
