// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>

#include "format/squashfs/image.h"

namespace headrace {
namespace {

constexpr uint32_t kMagic = 0x73717368;  // "hsqs"
constexpr uint64_t kSmallestBlock = uint64_t{4} << 10;
constexpr uint64_t kFragmentBytes = 16;
constexpr uint64_t kNone = ~uint64_t{0};

Status check_packing(SquashPacking packing) {
  const std::string_view name = squash_packing_name(packing);
  if (packing == SquashPacking::kLzma || packing == SquashPacking::kLzo)
    return unsupported(fmt::format(
        "the image is packed with {}, which is not read: make it again with mksquashfs -comp zstd",
        name));
  if (name.empty())
    return corrupt(fmt::format("no way of packing has number {}", static_cast<unsigned>(packing)))
        .at(20);
  return {};
}

Status check_tables(const SquashSuperblock& super) {
  if (super.inodes < kSquashSuperblock || super.inodes >= super.folders ||
      super.folders > super.used)
    return corrupt("the tables of inodes and folders are not within the image").at(64);
  if (super.fragments == 0) return {};
  const uint64_t blocks =
      (super.fragments * kFragmentBytes + kSquashMetadataBlock - 1) / kSquashMetadataBlock;
  if (super.fragment_table == kNone || super.fragment_table > super.used ||
      blocks > (super.used - super.fragment_table) / 8)
    return corrupt(
               fmt::format("the table of {} fragments is not within the image", super.fragments))
        .at(80);
  return {};
}

}  // namespace

bool is_squash_image(Bytes head) {
  return head.size() >= 4 && load_le<uint32_t>(head) == kMagic;
}

Result<SquashSuperblock> parse_squash_superblock(Bytes head, uint64_t file_bytes) {
  if (!is_squash_image(head))
    return corrupt("no SquashFS image: it does not begin with hsqs").at(0);
  if (head.size() < kSquashSuperblock)
    return corrupt("the image ends within its superblock").at(head.size());
  const auto major = load_le<uint16_t>(head.subspan(28));
  const auto minor = load_le<uint16_t>(head.subspan(30));
  if (major != 4 || minor != 0)
    return unsupported(fmt::format(
        "a SquashFS image of version {}.{}: only 4.0 is read, which mksquashfs writes since 2009",
        major, minor));
  SquashSuperblock super{
      .block_size = load_le<uint32_t>(head.subspan(12)),
      .fragments = load_le<uint32_t>(head.subspan(16)),
      .packing = static_cast<SquashPacking>(load_le<uint16_t>(head.subspan(20))),
      .root = load_le<uint64_t>(head.subspan(32)),
      .used = load_le<uint64_t>(head.subspan(40)),
      .inodes = load_le<uint64_t>(head.subspan(64)),
      .folders = load_le<uint64_t>(head.subspan(72)),
      .fragment_table = load_le<uint64_t>(head.subspan(80)),
  };
  HEADRACE_TRY(check_packing(super.packing));
  if (!std::has_single_bit(super.block_size) || super.block_size < kSmallestBlock ||
      super.block_size > kSquashMostBlock ||
      load_le<uint16_t>(head.subspan(22)) != std::countr_zero(super.block_size))
    return corrupt(fmt::format("blocks of {} bytes cannot be", super.block_size)).at(12);
  if (super.used > file_bytes)
    return corrupt(fmt::format("the image is cut short: it says {} bytes, {} are there", super.used,
                               file_bytes))
        .at(file_bytes);
  HEADRACE_TRY(check_tables(super));
  return super;
}

}  // namespace headrace
