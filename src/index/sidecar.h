// SPDX-License-Identifier: Apache-2.0
//
// Sidecar: the part of shard `X`, kept in one file, `X.hridx` beside it or
// elsewhere.  It holds while X has the size and the time that the part names; of a
// folder, while every folder that was listed has its time; of a shard that a file beside it
// describes (LitData's index.json), while that has its size and time too.
#pragma once

#include <string>

#include "base/status.h"
#include "index/indexed_source.h"
#include "index/part.h"
#include "storage/store.h"

namespace headrace {

inline constexpr std::string_view kSidecarSuffix = ".hridx";

inline std::string sidecar_path(const std::string& shard) {
  return shard + std::string(kSidecarSuffix);
}
// Of one part of the shard, where only that is meant: X#part.hridx.
std::string sidecar_path(const FileInfo& shard);

// A file beside a shard that says what is in it: for PartHead::folders of a shard that is a file.
FolderStamp stamp_of_beside(std::string name, const FileInfo& info);

// Whether the part still describes the shard.
bool is_current(const Part& part, const FileInfo& shard, const Store& store);

// The part kept at `path` if it is there, intact and current for `shard`; else why not.
// `data` is the store of the shard.  Up to `memory_bytes` it is read whole and verified; a larger
// one is read by groups.
Result<PartPointer> read_sidecar(const std::shared_ptr<const Store>& store, const std::string& path,
                                 const FileInfo& shard, const Store& data, uint64_t memory_bytes);

// Appears complete or not at all.
Status write_sidecar(const std::string& path, const Part& part);

}  // namespace headrace
