// SPDX-License-Identifier: Apache-2.0
//
// files: plain files, one value each, named by a folder or by a list.
//
//   class folders, a flat folder      folders.h
//   one path a line, with a label     text list: .txt .list
//   .csv .tsv, JSON lines, pickle     lists.h
//
// Paths of a list are relative to a root, by default the folder of the list.  Sizes are
// not known to the index: that would be a stat per file.

#include "format/files/folders.h"
#include "format/files/lists.h"
#include "format/format.h"

namespace headrace {
namespace {

Result<PartPointer> index(const ShardInput& shard) {
  return shard.info.is_folder ? index_folder(shard) : index_list(shard);
}

}  // namespace

extern constinit const Format files_format{
    .name = "files",
    .doc = "class folders, a flat folder, or a list of files: text, CSV, JSON lines, pickle",
    .suffixes = kListSuffixes,
    .takes_folders = true,
    .sniff = sniff_list,
    .index = index,
};

}  // namespace headrace
