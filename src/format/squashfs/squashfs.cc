// SPDX-License-Identifier: Apache-2.0
//
// squashfs: an image file as a folder of samples, read in this process, no mount.  The layout is
// in squashfs_image.h; what files become is as of a folder (folders.h).
//
// A value is the file's blocks, one after the other:
//   plain blocks       read where they lie; neighbours as one
//   packed blocks      units that open as a whole
//   the end of a file  often a stretch of a fragment: a unit that many files share
//   holes              a unit without bytes that opens to zeros

#include "format/squashfs/image.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".squashfs", ".sqfs", ".sqsh", ".squash"};

Result<PartPointer> index(const ShardInput& shard) {
  Buffer head;
  HEADRACE_TRY(
      shard.store.read_at(shard.info.path, 0, std::min(kSquashSuperblock, shard.info.bytes), head));
  HEADRACE_ASSIGN(const SquashSuperblock super,
                  parse_squash_superblock(head.bytes(), shard.info.bytes));
  SquashTree tree(shard, super);
  HEADRACE_ASSIGN(const TreeEntry root, tree.find_folder(shard.info.part));
  return index_tree(tree, root, shard, 1,
                    PartHead{.format = "squashfs",
                             .shard_bytes = shard.info.bytes,
                             .modified_ns = shard.info.modified_ns,
                             .has_openings = true});
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  if (unit.decoded_bytes > kSquashMostBlock) return corrupt("no block is so large");
  decoded.resize(unit.decoded_bytes);
  if (unit.encoding == kSquashHole) {
    std::fill(decoded.span().begin(), decoded.span().end(), std::byte{0});
    return {};
  }
  const bool is_fragment = (unit.encoding & kSquashFragment) != 0;
  const auto packing = static_cast<SquashPacking>(unit.encoding & ~kSquashFragment);
  HEADRACE_ASSIGN(const size_t size, unpack_squash_block(packing, stored, decoded.span()));
  // Of a fragment only the most is known: pieces past its end are found when they are taken.
  if (size != decoded.size() && !is_fragment)
    return corrupt("a block unpacks to less than the file has there");
  decoded.resize(size);
  return {};
}

}  // namespace

extern constinit const Format squashfs_format{
    .name = "squashfs",
    .doc =
        "a SquashFS image as a folder of samples, without a mount; `image.sqfs#train`: a folder "
        "in it",
    .suffixes = kSuffixes,
    .takes_parts = true,
    .guards_lengths = false,
    .sniff = is_squash_image,
    .index = index,
    .decode_unit = decode_unit,
};

}  // namespace headrace
