// SPDX-License-Identifier: Apache-2.0
//
// What a user writes for a data set, as the paths of its shards.
//
//   "train-{0000..0127}.tar"   braces, as in a shell: ranges, lists, nested
//   "train-*.tar"              globs, sorted by bytes
//   "shards/"                  a folder that holds shards (*.tar): those, sorted
//   "imagenet/train"           any other folder: one shard
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "storage/store.h"

namespace headrace {

// A folder that holds this is being packed, or was until it was interrupted: no data set yet.
inline constexpr std::string_view kUnfinishedName = "headrace.unfinished";

inline constexpr size_t kMaxShards = 10'000'000;

Result<std::vector<std::string>> expand_braces(const std::string& pattern);
// Whether it may name several paths, or one that has such a name.
bool has_wildcard(std::string_view path);
// Paths that match; sorted.  No match is kNotFound.
Result<std::vector<std::string>> expand_glob(const Store& store, const std::string& pattern);
// All of it, for every url in turn.  A plain path need not exist.  Of a server all that the opening
// will ask about is asked at once; `sidecars`: these too.
Result<std::vector<std::string>> expand_urls(const Store& store,
                                             const std::vector<std::string>& urls,
                                             bool sidecars = true);

// Without "file://" and trailing slashes.
std::string clean_path(std::string path);

// A data set stays where it was when the process changes its folder later.
Result<std::vector<std::string>> absolute_paths(std::vector<std::string> paths);

// `path#part` as two, unless there is a file of that very name.
struct NamedPart {
  std::string path;
  std::string part;
};
NamedPart split_part(const Store& store, const std::string& path);
// The folder that all paths lie in, without a trailing slash; "" where there is none.
std::string common_folder(const std::vector<std::string>& paths);

// Names relative to the folder that all shards share.  A single shard that only names files
// has none of its own: the folder of an image data set may be called anything.
std::vector<std::string> relative_names(const std::vector<std::string>& paths, bool has_files);
// For messages: one url, or the first and how many more.
std::string name_urls(const std::vector<std::string>& urls);
// The error of a data set without a sample; notices may tell why.
Status no_samples(const std::vector<std::string>& urls, const std::vector<std::string>& notices);

}  // namespace headrace
