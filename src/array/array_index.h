// SPDX-License-Identifier: Apache-2.0
//
// What opening files of arrays learned, as it is kept: so that the next start reads this one file,
// and needs no library of Python's.
//
//   "hrarrays"  u32 version  u32 0  u64 bytes of the tree  tree (tree.h)  u64 high  u64 low
//
// Little-endian; the last two are the Hash128 of all before.  The tree:
//
//   {format: "hdf5",
//    entries: [{path, group,                 of each file or folder, relative to where the data are
//               stamps: {names, numbers},    what was looked at: bytes, time, whether it is a
//               folder attributes: {…},             of the file or group itself arrays: [{name,
//               dims, …}]    FileArray; `files` are relative to the path groups: [[name, arrays]]
//               where each group is a sample, in place of `arrays`
//              }, …]}
//
// An entry holds while everything that was looked at has the size and the time that it had.
#pragma once

#include <string>
#include <vector>

#include "array/file_array.h"
#include "array/tree.h"
#include "storage/store.h"

namespace headrace {

// Another one wherever other things would be learned of the same files.
inline constexpr uint32_t kArrayIndexVersion = 2;

std::vector<std::byte> pack_array_index(const Tree& index);
// kCorrupt where it is damaged, kUnsupported where it is of another version.
Result<Tree> parse_array_index(Bytes bytes);

// The time that stands for a state of the file: of a store that has a better tag (an ETag), that.
int64_t stamp_of(const FileInfo& info);

// What of an entry is compared.  kAll: sizes and times of everything that was looked at.  kSome: of
// some of it, for an index that somebody made on purpose: a start at scale is one read.  kSizes: of
// some files, their sizes, where the data lay elsewhere when they were indexed.
enum class Compared : uint8_t { kAll, kSome, kSizes };

// Whether what was looked at for the entry of `path` is as it was.
bool is_current(const Tree& entry, const std::string& path, const Store& store, const RunJobs& run,
                Compared compared);

// A name of an entry's `files` in full.
std::string file_in(const std::string& path, const std::string& name);
// Makes all names of `files` in the entry's arrays whole.
void resolve_files(Tree& entry, const std::string& path);

}  // namespace headrace
