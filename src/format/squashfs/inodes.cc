// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "format/squashfs/image.h"

namespace headrace {
namespace {

// Those with attributes, and of large files, are 7 more.
constexpr uint16_t kFolder = 1;
constexpr uint16_t kFile = 2;
constexpr uint16_t kExtended = 7;

SquashPlace place_of(uint64_t reference) {
  return {reference >> 16, reference & 0xffff};
}

Status wrong_type(std::string_view wanted, uint16_t type) {
  return corrupt(fmt::format("an inode of type {} where a {} should be", type, wanted));
}

template <size_t N>
using Raw = std::array<std::byte, N>;

}  // namespace

Status SquashTree::folder_inode(uint64_t reference, FolderInode& out) {
  SquashPlace at = place_of(reference);
  Raw<16> head;
  HEADRACE_TRY(inodes_.read(at, head));
  const auto type = load_le<uint16_t>(head);
  uint64_t size = 0;
  if (type == kFolder) {
    Raw<16> rest;
    HEADRACE_TRY(inodes_.read(at, rest));
    const Bytes b(rest);
    out.listing = {load_le<uint32_t>(b), load_le<uint16_t>(b.subspan(10))};
    size = load_le<uint16_t>(b.subspan(8));
  } else if (type == kFolder + kExtended) {
    Raw<24> rest;
    HEADRACE_TRY(inodes_.read(at, rest));
    const Bytes b(rest);
    out.listing = {load_le<uint32_t>(b.subspan(8)), load_le<uint16_t>(b.subspan(18))};
    size = load_le<uint32_t>(b.subspan(4));
  } else {
    return wrong_type("folder", type);
  }
  out.size = size < 3 ? 0 : size - 3;  // 3 stand for `.` and `..`, which are not stored
  return {};
}

Status SquashTree::file_inode(uint64_t reference, FileInode& out) {
  SquashPlace at = place_of(reference);
  Raw<16> head;
  HEADRACE_TRY(inodes_.read(at, head));
  const auto type = load_le<uint16_t>(head);
  if (type == kFile) {
    Raw<16> rest;
    HEADRACE_TRY(inodes_.read(at, rest));
    const Bytes b(rest);
    out = {.blocks_at = load_le<uint32_t>(b),
           .size = load_le<uint32_t>(b.subspan(12)),
           .fragment = load_le<uint32_t>(b.subspan(4)),
           .in_fragment = load_le<uint32_t>(b.subspan(8)),
           .sizes = at};
    return {};
  }
  if (type != kFile + kExtended) return wrong_type("file", type);
  Raw<40> rest;
  HEADRACE_TRY(inodes_.read(at, rest));
  const Bytes b(rest);
  out = {.blocks_at = load_le<uint64_t>(b),
         .size = load_le<uint64_t>(b.subspan(8)),
         .fragment = load_le<uint32_t>(b.subspan(28)),
         .in_fragment = load_le<uint32_t>(b.subspan(32)),
         .sizes = at};
  return {};
}

}  // namespace headrace
