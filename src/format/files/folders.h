// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"
#include "index/part_builder.h"

namespace headrace {

struct TreeEntry {
  std::string path;  // relative to the root
  bool is_folder = false;
  uint64_t place = 0;  // for the tree itself: where an image has it, say
};

// A tree of folders, as a file system or an image of one lists it.
class FolderTree {
 public:
  virtual ~FolderTree() = default;
  // All entries of a folder, sorted by the bytes of their names; and its time, of before.  Called
  // by as many threads at once as index_tree() may use.
  virtual Result<std::vector<TreeEntry>> list(const TreeEntry& folder, int64_t& modified_ns) = 0;
  // Gives the file's value to the sample at hand.
  virtual Status add_value(const TreeEntry& file, uint32_t field, PartBuilder& part) = 0;
  // What a user should hear about entries that were left out.
  virtual std::vector<std::string> notices() const { return {}; }
};

// A tree of folders as a data set (which files are one sample: grouping.h).  With sub-folders
// they are the classes:
//
//   root/class/…/cat.0.jpg      classes: sorted names of the first level
//   root/class/…/cat.0.json     sample "class/…/cat.0": fields jpg, json, and cls inline
//
// without, its files alone, and no cls.  Hidden files are skipped.  `head` is that of the part;
// where the shard is a folder, the part also holds the times of all that were listed.
Result<PartPointer> index_tree(FolderTree& tree, const TreeEntry& root, const ShardInput& shard,
                               unsigned threads, PartHead head);

// A folder of plain files: none is stat'ed or opened.
Result<PartPointer> index_folder(const ShardInput& shard);

// The files below a folder: its own first, then its sub-folders', so that those of one key stand
// together.
struct FileTree {
  std::vector<std::string> files;  // relative to the root
  std::vector<FolderStamp> folders;
};

// Of a shard that is a folder: all below it.
Status list_tree(const ShardInput& shard, FileTree& out);

// Lower case, and jpeg is jpg: ".JPEG", ".jpeg" and ".jpg" are one field.
std::string normal_extension(std::string_view extension);

}  // namespace headrace
