// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows liblzma.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/inflater.h"
#include "base/status.h"

namespace headrace {

// Unpacks one .xz stream and says how many bytes of `out` it filled; its checksum is verified.
// Bad bytes, more than fits, and a dictionary beyond 32 MiB are kCorrupt; a build without the
// library says so.
Result<size_t> unpack_xz(Bytes packed, MutableBytes out);

// Of .xz streams one after the other; with dictionaries up to 64 MiB, as `xz -9` has them.
Result<std::unique_ptr<Inflater>> xz_inflater();

}  // namespace headrace
