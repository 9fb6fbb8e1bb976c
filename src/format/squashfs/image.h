// SPDX-License-Identifier: Apache-2.0
//
// SquashFS 4.0: an image file as a tree of folders.
//
//   0            96
//   +------------+- - - - - - - - - - - - -+--------+---------+-----------+- - - -
//   | superblock | data blocks, fragments  | inodes | folders | fragments | …
//   +------------+- - - - - - - - - - - - -+--------+---------+-----------+- - - -
//                                           metadata: squashfs_metadata.h
//
//   inode of a file    where its blocks begin, size, a u32 for each block: stored bytes, bit 24:
//                      plain, 0: a hole; which fragment holds the rest, and where
//   inode of a folder  where its listing begins and how long it is
//   listing            runs of | u32 entries - 1 | u32 block of their inodes | u32 number |, each
//                      followed by | u16 place | i16 | u16 type | u16 length - 1 | name |
//   fragment           | u64 offset | u32 stored bytes, bit 24: plain | u32 |, of many files' rests
//
// Little-endian.  There is no checksum: every pointer is checked, and what is counted is bounded
// by the size of the image.
#pragma once

#include <memory>
#include <unordered_set>

#include "format/files/folders.h"
#include "format/squashfs/metadata.h"

namespace headrace {

inline constexpr uint64_t kSquashSuperblock = 96;
inline constexpr uint64_t kSquashMostBlock = uint64_t{1} << 20;

struct SquashSuperblock {
  uint64_t block_size = 0;
  uint64_t fragments = 0;
  SquashPacking packing = SquashPacking::kGzip;
  uint64_t root = 0;    // reference of its inode
  uint64_t used = 0;    // bytes of the image
  uint64_t inodes = 0;  // where the tables begin
  uint64_t folders = 0;
  uint64_t fragment_table = 0;
};

bool is_squash_image(Bytes head);
Result<SquashSuperblock> parse_squash_superblock(Bytes head, uint64_t file_bytes);

// How values of a file open: how the image is packed, and what it is.
inline constexpr uint32_t kSquashHole = 8;
inline constexpr uint32_t kSquashFragment = 16;

// One thread at a time.
class SquashTree final : public FolderTree {
 public:
  SquashTree(const ShardInput& shard, const SquashSuperblock& super);

  // The folder `path` of the image, "" being its root; paths that are listed count from it.
  Result<TreeEntry> find_folder(std::string_view path);
  Result<std::vector<TreeEntry>> list(const TreeEntry& folder, int64_t& modified_ns) override;
  Status add_value(const TreeEntry& file, uint32_t field, PartBuilder& part) override;
  std::vector<std::string> notices() const override;

 private:
  struct FileInode {
    uint64_t blocks_at = 0;  // in the image
    uint64_t size = 0;
    uint32_t fragment = 0;
    uint64_t in_fragment = 0;
    SquashPlace sizes = {};  // of the blocks' size words
  };
  struct FolderInode {
    SquashPlace listing = {};
    uint64_t size = 0;
  };
  class Pieces;

  Status file_inode(uint64_t reference, FileInode& out);
  Status folder_inode(uint64_t reference, FolderInode& out);
  Result<std::vector<TreeEntry>> entries_of(const TreeEntry& folder);
  Status take_run(const std::string& prefix, SquashPlace& at, uint64_t& left,
                  std::vector<TreeEntry>& out);
  Status take_entry(const std::string& prefix, uint64_t inode_block, SquashPlace& at,
                    uint64_t& left, std::vector<TreeEntry>& out);
  Status add_blocks(FileInode& inode, Pieces& pieces);
  Status add_fragment(const FileInode& inode, Pieces& pieces);
  Status count(std::string_view what, uint64_t& counter) const;

  const ShardInput& shard_;
  const SquashSuperblock super_;
  SquashTable inodes_;
  SquashTable folders_;
  SquashTable fragments_;
  HeaderWindow pointers_;                // to the blocks of the fragments' table
  std::unordered_set<uint64_t> listed_;  // references of folders: each has one place in the tree
  uint64_t entries_ = 0;
  uint64_t pieces_ = 0;
  uint64_t skipped_ = 0;
  std::string first_skipped_;
};

}  // namespace headrace
