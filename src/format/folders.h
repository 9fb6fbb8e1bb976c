// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format.h"

namespace headrace {

// A folder as a data set.  With sub-folders they are the classes:
//
//   root/class/…/cat.jpg        classes: sorted names of the first level
//   root/class/…/cat.json       sample "class/…/cat": fields jpg, json, and cls inline
//
// without, its files grouped by key, and no cls.  Hidden files are skipped; no file is
// stat'ed or opened.  The part holds the times of all folders that were listed.
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
