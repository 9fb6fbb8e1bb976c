// SPDX-License-Identifier: Apache-2.0
//
// How buffers of a compressed batch are opened: LZ4 frames and zstd.
#pragma once

#include "base/buffer.h"
#include "format/arrow/metadata.h"

namespace headrace {

// The most that so many stored bytes can hold: LZ4 255 bytes for each; zstd a block of 128 KiB
// for every 4.
uint64_t most_decoded(ArrowCompression compression, uint64_t stored);

// `stored` opens to exactly `decoded` bytes, or is kCorrupt.  Allocates only these.
Status open_arrow_buffer(ArrowCompression compression, Bytes stored, uint64_t decoded, Buffer& out);

}  // namespace headrace
