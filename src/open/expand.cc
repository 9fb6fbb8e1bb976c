// SPDX-License-Identifier: Apache-2.0
#include "open/expand.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/shown_url.h"
#include "format/folder_index.h"
#include "format/registry.h"
#include "format/splits.h"
#include "index/names.h"
#include "index/sidecar.h"
#include "storage/paths.h"
#include "storage/stat_memo.h"

namespace headrace {
namespace {

using Texts = std::vector<std::string>;

constexpr size_t kMaxLookedAt =
    1000;  // paths that are looked at one by one: each may be a folder of shards

// Not there, or not for this user, as `lost+found` of a disk.  With any other error files that are
// there would be left out of the data set.
bool is_missing(const Status& status, std::string_view path) {
  return status.code() == Code::kNotFound ||
         (status.code() == Code::kPermission && scheme_of(path).empty());
}

// One level of a glob: what lies in `folder` and matches.
Status match_entries(const Store& store, const std::string& folder, const std::string& pattern,
                     bool folders, Texts& out) {
  HEADRACE_ASSIGN(const std::vector<FileInfo> entries, store.list(folder.empty() ? "." : folder));
  for (const FileInfo& entry : entries) {
    const std::string name = entry.path.substr(entry.path.rfind('/') + 1);
    if (folders && !entry.is_folder) continue;
    if (!folders && name.ends_with(kSidecarSuffix)) continue;
    if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
    out.push_back(join_path(folder, name));
  }
  return {};
}

// The shards in a folder, where it is a folder of shards.
Texts shards_in(const std::vector<FileInfo>& entries) {
  Texts out;
  for (const Format* format : all_formats()) {
    if (format->takes_folders) continue;
    for (const FileInfo& entry : entries) {
      const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
      if (entry.is_folder || name.starts_with('.')) continue;
      const std::string lower = lower_case(name);
      if (std::any_of(format->suffixes.begin(), format->suffixes.end(),
                      [&lower](std::string_view suffix) { return lower.ends_with(suffix); }))
        out.push_back(entry.path);
    }
    if (!out.empty()) break;
  }
  return out;
}

// Of a folder that one format knows as a whole.
Result<Texts> claimed_shards(const Store& store, const std::string& folder,
                             const std::vector<FileInfo>& entries) {
  for (const Format* format : all_formats()) {
    if (format->claim == nullptr) continue;
    HEADRACE_ASSIGN(Texts shards, format->claim(store, folder, entries));
    if (!shards.empty()) return shards;
  }
  return Texts();
}

// Of a shard in two files a user may name either, or what their names share.
std::string shard_of_pair(const Store& store, const std::string& path, bool exists) {
  for (const Format* format : all_formats()) {
    if (format->companion.empty()) continue;
    const bool is_companion = path.ends_with(format->companion);
    if (exists && !is_companion) continue;
    std::string shard = path;
    if (is_companion) shard.resize(path.size() - format->companion.size());
    const std::string companion = shard + std::string(format->companion);
    shard += format->suffixes[0];
    if (store.stat(shard).ok() && store.stat(companion).ok()) return shard;
  }
  return path;
}

// A folder that a glob found may be a format's as a whole; else it is taken as it is.
Result<Texts> expand_match(const Store& store, const std::string& path) {
  const Result<FileInfo> info = store.stat(path);
  if (!info.ok() || !info.value().is_folder) return Texts{shard_of_pair(store, path, true)};
  HEADRACE_ASSIGN(const std::vector<FileInfo> entries, store.list(path));
  HEADRACE_ASSIGN(Texts shards, claimed_shards(store, path, entries));
  if (shards.empty()) shards.push_back(path);
  return shards;
}

// Of shards whose names all carry a split those of the one that is named; the error lists them.
Status choose_split(const std::string& folder, const std::string& part, Texts& shards) {
  Texts splits;
  for (const std::string& shard : shards) {
    const std::string split = split_in_name(base_name(shard));
    if (split.empty()) return {};
    if (std::find(splits.begin(), splits.end(), split) == splits.end()) splits.push_back(split);
  }
  if (part.empty())
    return splits.size() > 1 ? which_split(folder, splits).in_file(folder) : Status();
  if (std::find(splits.begin(), splits.end(), part) == splits.end()) return {};
  std::erase_if(shards, [&part](const std::string& shard) {
    return split_in_name(base_name(shard)) != part;
  });
  return {};
}

// `part` becomes empty where it was a split that chose among the shards.
Status expand_one(const Store& store, const std::string& path, std::string& part, Texts& out) {
  const Result<FileInfo> info = store.stat(path);
  if (!info.ok() && has_wildcard(path)) {
    HEADRACE_ASSIGN(const Texts matches, expand_glob(store, path));
    std::unordered_set<std::string> taken;  // both files of a pair match, and are one shard
    for (const std::string& match : matches) {
      HEADRACE_ASSIGN(Texts shards, expand_match(store, match));
      for (std::string& shard : shards)
        if (taken.insert(shard).second) out.push_back(std::move(shard));
    }
    return {};
  }
  if (info.ok() && info.value().is_folder) {
    HEADRACE_ASSIGN(const std::vector<FileInfo> entries, store.list(path));
    if (std::any_of(entries.begin(), entries.end(),
                    [](const FileInfo& e) { return e.path.ends_with(kUnfinishedName); }))
      return invalid("this pack or copy is not finished: run the same command again").in_file(path);
    HEADRACE_ASSIGN(Texts shards, claimed_shards(store, path, entries));
    const bool claimed = !shards.empty();
    if (!claimed) shards = shards_in(entries);
    if (!shards.empty()) {
      if (!claimed) {
        const size_t all = shards.size();
        HEADRACE_TRY(choose_split(path, part, shards));
        if (shards.size() < all || (!part.empty() && split_in_name(base_name(shards[0])) == part))
          part.clear();
      }
      out.insert(out.end(), shards.begin(), shards.end());
      return {};
    }
  }
  const bool is_folder = info.ok() && info.value().is_folder;
  out.push_back(is_folder ? path : shard_of_pair(store, path, info.ok()));
  return {};
}

// `folder#train` is the folder `train` in it, as in an image: where a data set of several streams
// lies in one folder, a user names one of them as they would name a part of a file.
Status expand_named(const Store& store, const NamedPart& named, Texts& out) {
  std::string part = named.part;
  if (part.empty()) return expand_one(store, named.path, part, out);
  const auto is_folder = [&store](const std::string& path) {
    const Result<FileInfo> info = store.stat(path);
    return info.ok() && info.value().is_folder;
  };
  const std::string inside = join_path(named.path, named.part);
  if (stays_inside(named.part) && is_folder(named.path) && is_folder(inside))
    return expand_named(store, {clean_path(inside), ""}, out);
  const size_t before = out.size();
  HEADRACE_TRY(expand_one(store, named.path, part, out));
  if (part.empty()) return {};
  for (size_t i = before; i < out.size(); ++i) out[i] += '#' + part;
  return {};
}

}  // namespace

Result<std::vector<std::string>> expand_glob(const Store& store, const std::string& pattern) {
  const std::string_view scheme = scheme_of(pattern);
  Texts found{!scheme.empty() ? std::string(scheme) + "://" : pattern.starts_with('/') ? "/" : ""};
  for (size_t at = found[0].size(); at < pattern.size();) {
    const size_t slash = std::min(pattern.find('/', at), pattern.size());
    const std::string piece = pattern.substr(at, slash - at);
    const bool last = slash == pattern.size();
    Texts next;
    for (const std::string& folder : found) {
      if (!has_wildcard(piece))
        next.push_back(join_path(folder, piece));
      else if (Status s = match_entries(store, folder, piece, !last, next);
               !s.ok() && (found.size() == 1 || !is_missing(s, folder)))
        return s;  // among several folders, one may be without the next level
    }
    found = std::move(next);
    at = slash + 1;
  }
  const std::vector<Result<FileInfo>> infos = store.stat_all(found);
  Texts there;
  for (size_t i = 0; i < found.size(); ++i) {
    if (infos[i].ok())
      there.push_back(std::move(found[i]));
    else if (!is_missing(infos[i].status(), pattern))
      return infos[i].status();
  }
  found = std::move(there);
  if (found.empty()) return not_found(fmt::format("nothing matches '{}'", pattern));
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

// All that the opening will ask about, at once; the store remembers.
void look_ahead(const Store& store, Texts paths, bool sidecars) {
  const size_t count = paths.size();
  for (size_t i = 0; sidecars && i < count; ++i)
    if (!has_wildcard(paths[i]) && !has_query(paths[i])) paths.push_back(sidecar_path(paths[i]));
  if (count > 0) paths.push_back(join_path(parent_folder(paths[0]), kPackManifest));
  (void)store.stat_all(paths);
}

Result<Texts> expand_all(const Store& store, const std::vector<Texts>& named, bool is_far,
                         bool sidecars) {
  if (is_far) {
    Texts all;
    for (const Texts& paths : named)
      if (paths.size() <= kMaxLookedAt) all.insert(all.end(), paths.begin(), paths.end());
    if (all.size() <= kMaxLookedAt) look_ahead(store, std::move(all), sidecars);
  }
  Texts out;
  for (const Texts& paths : named) {
    // A long list is taken at its word: what is missing shows when it is opened.
    if (paths.size() > kMaxLookedAt && !has_wildcard(paths.front())) {
      out.insert(out.end(), paths.begin(), paths.end());
      continue;
    }
    for (const std::string& path : paths)
      HEADRACE_TRY(expand_named(store, split_part(store, path), out));
  }
  if (out.size() > kMaxShards) return invalid(fmt::format("more than {} shards", kMaxShards));
  return out;
}

}  // namespace

bool has_wildcard(std::string_view path) {
  return without_query(path).find_first_of("*?[") != std::string_view::npos;
}

Result<std::vector<std::string>> expand_urls(const Store& store,
                                             const std::vector<std::string>& urls, bool sidecars) {
  if (urls.empty()) return invalid("no data set is named");
  std::vector<Texts> named;
  for (const std::string& url : urls) {
    std::string path = clean_path(url);
    // A file or folder that is called so; of a server nobody asks for that.
    if (path.find('{') != std::string::npos && store.cost(path).in_caller &&
        store.stat(path).ok()) {
      named.push_back({std::move(path)});
      continue;
    }
    HEADRACE_ASSIGN(Texts paths, expand_braces(path));
    named.push_back(std::move(paths));
  }
  if (store.cost(urls.front()).in_caller) return expand_all(store, named, false, sidecars);
  // Borrowed: it lives as long as this call.
  const StatMemo memo(std::shared_ptr<const Store>(std::shared_ptr<const Store>(), &store));
  return expand_all(memo, named, true, sidecars);
}

NamedPart split_part(const Store& store, const std::string& path) {
  const size_t mark = path.rfind('#');
  if (mark == std::string::npos || mark == 0 || store.stat(path).ok()) return {path, ""};
  return {path.substr(0, mark), path.substr(mark + 1)};
}

std::string clean_path(std::string path) {
  constexpr std::string_view kScheme = "file://";
  if (path.starts_with(kScheme)) path.erase(0, kScheme.size());
  const bool is_url = !scheme_of(path).empty();
  const size_t least = is_url ? scheme_of(path).size() + 3 : 1;
  while (path.size() > least && path.ends_with('/')) path.pop_back();
  if (is_url) return path;
  // "." has no name to put a sidecar beside; its absolute form has.
  const std::string_view last = std::string_view(path).substr(path.rfind('/') + 1);
  if (last == "." || last == "..") {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    if (!error) return clean_path(absolute.lexically_normal().string());
  }
  return path;
}

std::string common_folder(const std::vector<std::string>& paths) {
  if (paths.empty()) return {};
  std::string_view common = paths.front();
  common = common.substr(0, common.rfind('/') == std::string_view::npos ? 0 : common.rfind('/'));
  for (const std::string& path : paths) {
    while (!common.empty() && !(path.starts_with(common) && path.size() > common.size() &&
                                path[common.size()] == '/')) {
      const size_t slash = common.rfind('/');
      common = common.substr(0, slash == std::string_view::npos ? 0 : slash);
    }
  }
  return std::string(common);
}

std::string name_urls(const std::vector<std::string>& urls) {
  return urls.size() == 1 ? urls.front()
                          : fmt::format("{} and {} more", urls.front(), urls.size() - 1);
}

std::vector<std::string> relative_names(const std::vector<std::string>& paths, bool has_files) {
  if (paths.size() == 1 && has_files) return {""};
  const std::string common = common_folder(paths);
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const std::string& url : paths) {
    const std::string path(without_query(url));
    const bool whole = common.empty() && !path.starts_with('/');
    names.push_back(whole ? path : path.substr(common.size() + 1));
  }
  return names;
}

Status no_samples(const std::vector<std::string>& urls, const std::vector<std::string>& notices) {
  std::string text = "there is no sample";
  for (const std::string& notice : notices) text += "; " + notice;
  return corrupt(text).in_file(name_urls(urls));
}

Result<std::vector<std::string>> absolute_paths(std::vector<std::string> paths) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  for (std::string& path : paths) {
    if (is_absolute(path)) continue;
    if (error) return from_errno(error.value(), "current folder");
    while (path.starts_with("./")) path.erase(0, 2);
    path = join_path(here, path);
  }
  return paths;
}

}  // namespace headrace
