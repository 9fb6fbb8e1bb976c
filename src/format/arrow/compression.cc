// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/compression.h"

#include <fmt/format.h>

#include "base/lz4.h"
#include "base/zstd.h"

namespace headrace {

uint64_t most_decoded(ArrowCompression compression, uint64_t stored) {
  constexpr uint64_t kBlock = uint64_t{128} << 10;
  return compression == ArrowCompression::kZstd ? (stored / 4 + 1) * kBlock : stored * 255;
}

Status open_arrow_buffer(ArrowCompression compression, Bytes stored, uint64_t decoded,
                         Buffer& out) {
  if (decoded > most_decoded(compression, stored.size()))
    return corrupt(
        fmt::format("a compressed buffer of {} bytes cannot open to {}", stored.size(), decoded));
  out.resize(decoded);
  HEADRACE_ASSIGN(const size_t filled, compression == ArrowCompression::kZstd
                                           ? unpack_zstd(stored, out.span())
                                           : unpack_lz4_frame(stored, out.span()));
  if (filled == decoded) return {};
  return corrupt(
      fmt::format("a compressed buffer opens to {} bytes in place of {}", filled, decoded));
}

}  // namespace headrace
