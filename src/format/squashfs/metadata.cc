// SPDX-License-Identifier: Apache-2.0
#include "format/squashfs/metadata.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/lz4.h"
#include "base/rng.h"
#include "base/xz.h"
#include "base/zlib.h"
#include "base/zstd.h"

namespace headrace {
namespace {

constexpr uint64_t kHead = 2;
constexpr uint16_t kPlain = 1u << 15;

}  // namespace

std::string_view squash_packing_name(SquashPacking packing) {
  switch (packing) {
    case SquashPacking::kGzip:
      return "gzip";
    case SquashPacking::kLzma:
      return "lzma";
    case SquashPacking::kLzo:
      return "lzo";
    case SquashPacking::kXz:
      return "xz";
    case SquashPacking::kLz4:
      return "lz4";
    case SquashPacking::kZstd:
      return "zstd";
  }
  return {};
}

Result<size_t> unpack_squash_block(SquashPacking packing, Bytes packed, MutableBytes out) {
  switch (packing) {
    case SquashPacking::kGzip:
      return unpack_zlib(packed, out);
    case SquashPacking::kXz:
      return unpack_xz(packed, out);
    case SquashPacking::kLz4:
      return unpack_lz4(packed, out);
    case SquashPacking::kZstd:
      return unpack_zstd(packed, out);
    case SquashPacking::kLzma:
    case SquashPacking::kLzo:
      break;
  }
  return unsupported("the image is packed in a way that is not known here");
}

Status SquashTable::block(uint64_t at, const Block*& out) {
  Block& kept = kept_[mix64(at) % kKept];
  out = &kept;
  if (kept.at == at) return {};
  kept.at = ~uint64_t{0};  // stays so on failure
  // Compared without adding: places come from the image.
  if (at > end_ - begin_ || end_ - begin_ - at < kHead)
    return corrupt("a table of the image ends before what should be in it").at(end_);
  const uint64_t offset = begin_ + at;
  Bytes head;
  HEADRACE_TRY(window_.bytes(offset, kHead, head));
  const auto word = load_le<uint16_t>(head);
  const uint64_t stored = word & (kPlain - 1u);
  if (stored == 0 || stored > kSquashMetadataBlock || stored > end_ - offset - kHead)
    return corrupt(fmt::format("no block of a table is here: it would have {} bytes", stored))
        .at(offset);
  Bytes packed;
  HEADRACE_TRY(window_.bytes(offset + kHead, stored, packed));
  kept.bytes.resize(kSquashMetadataBlock);
  if ((word & kPlain) != 0) {
    std::copy(packed.begin(), packed.end(), kept.bytes.data());
    kept.size = stored;
  } else {
    const Result<size_t> size = unpack_squash_block(packing_, packed, kept.bytes.span());
    if (!size.ok()) return size.status().at(offset);
    kept.size = size.value();
  }
  kept.next = at + kHead + stored;
  kept.at = at;
  return {};
}

Status SquashTable::read(SquashPlace& at, MutableBytes out) {
  while (!out.empty()) {
    const Block* block_here = nullptr;
    HEADRACE_TRY(block(at.block, block_here));
    if (at.offset > block_here->size)
      return corrupt("a place in a table lies past the end of its block").at(begin_ + at.block);
    const size_t n = std::min<size_t>(out.size(), block_here->size - at.offset);
    std::copy_n(block_here->bytes.data() + at.offset, n, out.data());
    out = out.subspan(n);
    at.offset += n;
    if (!out.empty()) at = {block_here->next, 0};
  }
  return {};
}

}  // namespace headrace
