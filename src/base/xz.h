// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows liblzma.
#pragma once

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

// Unpacks one .xz stream and says how many bytes of `out` it filled; its checksum is verified.
// Bad bytes, more than fits, and a dictionary beyond 32 MiB are kCorrupt; a build without the
// library says so.
Result<size_t> unpack_xz(Bytes packed, MutableBytes out);

}  // namespace headrace
