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

#include <fmt/format.h>

#include "format/files/folders.h"
#include "format/files/lists.h"
#include "format/format.h"

namespace headrace {
namespace {

Result<PartPointer> index(const ShardInput& shard) {
  if (!shard.info.is_folder) return index_list(shard);
  if (!shard.info.part.empty())
    return not_found(fmt::format("there is no folder '{}' in it", shard.info.part))
        .in_file(shard.info.path);
  return index_folder(shard);
}

}  // namespace

extern constinit const Format files_format{
    .name = "files",
    .doc =
        "class folders, a flat folder, a list of files (text, CSV, JSON lines, pickle), or a table "
        "(CSV, TSV, JSON lines)",
    .suffixes = kListSuffixes,
    .takes_folders = true,
    .takes_parts = true,
    .sniff = sniff_list,
    .index = index,
};

}  // namespace headrace
