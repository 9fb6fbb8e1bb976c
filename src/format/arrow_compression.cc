// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_compression.h"

#include "base/have.h"

#include <fmt/format.h>

#ifdef HEADRACE_HAVE_LZ4
#include <lz4frame.h>
#endif
#ifdef HEADRACE_HAVE_ZSTD
#include <zstd.h>
#endif

namespace headrace {
namespace {

Status wrong_length(uint64_t decoded) {
  return corrupt(fmt::format("a compressed buffer does not open to its {} bytes", decoded));
}

#ifdef HEADRACE_HAVE_LZ4
Status open_lz4(Bytes stored, MutableBytes out) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
    return exhausted("no memory for LZ4");
  size_t filled = 0;
  size_t hint = 1;
  // One frame, or several: each call takes what it can and says how much more it wants.
  while (!stored.empty() && !LZ4F_isError(hint)) {
    size_t room = out.size() - filled;
    size_t taken = stored.size();
    hint = LZ4F_decompress(context, out.data() + filled, &room, stored.data(), &taken, nullptr);
    filled += room;
    stored = stored.subspan(taken);
    if (room == 0 && taken == 0) break;
  }
  LZ4F_freeDecompressionContext(context);
  if (LZ4F_isError(hint))
    return corrupt(fmt::format("a buffer in LZ4 is damaged: {}", LZ4F_getErrorName(hint)));
  if (filled != out.size() || hint != 0 || !stored.empty()) return wrong_length(out.size());
  return {};
}
#else
Status open_lz4(Bytes, MutableBytes) {
  return unsupported("this build has no LZ4: build it with liblz4-dev installed");
}
#endif

#ifdef HEADRACE_HAVE_ZSTD
Status open_zstd(Bytes stored, MutableBytes out) {
  const size_t filled = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(filled))
    return corrupt(fmt::format("a buffer in zstd is damaged: {}", ZSTD_getErrorName(filled)));
  return filled == out.size() ? Status() : wrong_length(out.size());
}
#else
Status open_zstd(Bytes, MutableBytes) {
  return unsupported("this build has no zstd: build it with libzstd-dev installed");
}
#endif

}  // namespace

uint64_t most_decoded(ArrowCompression compression, uint64_t stored) {
  constexpr uint64_t kBlock = uint64_t{128} << 10;
  return compression == ArrowCompression::kZstd ? (stored / 4 + 1) * kBlock : stored * 255;
}

Status open_arrow_buffer(ArrowCompression compression, Bytes stored, uint64_t decoded,
                         Buffer& out) {
  if (decoded > most_decoded(compression, stored.size())) return wrong_length(decoded);
  out.resize(decoded);
  return compression == ArrowCompression::kZstd ? open_zstd(stored, out.span())
                                                : open_lz4(stored, out.span());
}

}  // namespace headrace
