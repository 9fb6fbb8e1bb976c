// SPDX-License-Identifier: Apache-2.0
#include "format/folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "format/parallel.h"
#include "index/names.h"
#include "index/part_builder.h"
#include "index/sidecar.h"

namespace headrace {
namespace {

constexpr int kMaxDepth = 64;  // deeper is a loop of links
// A folder's time is taken from a clock that ticks every 4 to 10 ms: of a change within
// the tick of the listing it would say nothing.
constexpr int64_t kTickNs = 20'000'000;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_data(const FileInfo& entry) {
  const std::string_view name = base_name(entry.path);
  return !name.starts_with('.') && !name.ends_with(kSidecarSuffix);
}

// The entries that count, and the folder's time before they were listed.  Lists again while
// that time is younger than a tick, but not for ever: the clock may be another machine's.
Result<std::vector<FileInfo>> list_folder(const Store& store, const std::string& folder,
                                          int64_t& modified_ns) {
  const int64_t give_up = now_ns() + 5 * kTickNs;
  for (;;) {
    const int64_t now = now_ns();
    HEADRACE_ASSIGN(const FileInfo info, store.stat(folder));
    HEADRACE_ASSIGN(std::vector<FileInfo> entries, store.list(folder));
    const int64_t age = now - info.modified_ns;
    if (age >= 0 && age < kTickNs && now < give_up) continue;
    modified_ns = info.modified_ns;
    std::erase_if(entries, [](const FileInfo& entry) { return !is_data(entry); });
    return entries;
  }
}

// One thread at a time.
class Walker {
 public:
  Walker(const ShardInput& shard, FileTree& out) : shard_(shard), out_(out) {}

  Status walk(const std::string& folder, int depth) {
    if (depth > kMaxDepth)
      return corrupt("folders nest too deep: a loop of links?").in_file(folder);
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    const size_t root = shard_.info.path.size() + 1;
    FolderStamp stamp{folder.substr(std::min(root, folder.size()))};
    HEADRACE_ASSIGN(const std::vector<FileInfo> entries,
                    list_folder(shard_.store, folder, stamp.modified_ns));
    out_.folders.push_back(std::move(stamp));
    for (const FileInfo& entry : entries)
      if (!entry.is_folder) out_.files.push_back(entry.path.substr(root));
    for (const FileInfo& entry : entries)
      if (entry.is_folder) HEADRACE_TRY(walk(entry.path, depth + 1));
    return {};
  }

 private:
  const ShardInput& shard_;
  FileTree& out_;
};

// Files in order become samples.  One thread at a time.
class SampleBuilder {
 public:
  explicit SampleBuilder(const ShardInput& shard)
      : part_(PartHead{.format = "files",
                       .modified_ns = shard.info.modified_ns,
                       .has_files = true,
                       .whole_files = true}) {}

  PartHead& head() { return part_.head(); }

  // `label` < 0: none.
  Status add(const std::string& path, int64_t label) {
    const NameParts name = split_name(path);
    if (name.extension.empty()) {
      if (skipped_++ == 0) first_skipped_ = path;
      return {};
    }
    if (name.key != key_) end_sample();
    const uint32_t field = part_.field(normal_extension(name.extension));
    for (const auto& [other, file] : files_)
      if (other == field)
        return corrupt(fmt::format("'{}' and '{}' would be one field of one sample", file, path));
    if (files_.empty() && label >= 0)
      part_.add_int(part_.field("cls", Kind::kInt, Storage::kInline), label);
    part_.add_whole_file(field, part_.add_file(path));
    files_.emplace_back(field, path);
    key_ = name.key;
    return {};
  }

  Result<PartPointer> finish() {
    end_sample();
    if (skipped_ > 0)
      head().notices.push_back(
          fmt::format("{} files have no extension and are no samples, the first '{}'", skipped_,
                      first_skipped_));
    return part_.finish();
  }

 private:
  void end_sample() {
    if (!files_.empty()) part_.end_sample();
    files_.clear();
  }

  PartBuilder part_;
  std::string key_;
  std::vector<std::pair<uint32_t, std::string>> files_;  // of the sample at hand
  uint64_t skipped_ = 0;
  std::string first_skipped_;
};

Result<PartPointer> index_classes(const ShardInput& shard, const std::vector<std::string>& classes,
                                  int64_t root_modified_ns,
                                  const std::vector<std::string>& strays) {
  std::vector<FileTree> trees(classes.size());
  HEADRACE_TRY(parallel_for(classes.size(), shard.threads,
                            [&](size_t c) { return Walker(shard, trees[c]).walk(classes[c], 1); }));
  SampleBuilder samples(shard);
  samples.head().folders.push_back({"", root_modified_ns});
  for (size_t c = 0; c < classes.size(); ++c) {
    for (const std::string& file : trees[c].files)
      HEADRACE_TRY(samples.add(file, static_cast<int64_t>(c)));
    samples.head().classes.emplace_back(base_name(classes[c]));
    for (FolderStamp& folder : trees[c].folders)
      samples.head().folders.push_back(std::move(folder));
    trees[c] = {};
  }
  if (!strays.empty())
    samples.head().notices.push_back(
        fmt::format("{} files beside the class folders are no samples, the first '{}'",
                    strays.size(), strays.front()));
  return samples.finish();
}

}  // namespace

std::string normal_extension(std::string_view extension) {
  std::string out = lower_case(extension);
  if (out == "jpeg" || out.ends_with(".jpeg")) out.erase(out.size() - 2, 1);
  return out;
}

Status list_tree(const ShardInput& shard, FileTree& out) {
  return Walker(shard, out).walk(shard.info.path, 0);
}

Result<PartPointer> index_folder(const ShardInput& shard) {
  int64_t modified_ns = 0;
  HEADRACE_ASSIGN(const std::vector<FileInfo> entries,
                  list_folder(shard.store, shard.info.path, modified_ns));
  std::vector<std::string> classes, files;
  for (const FileInfo& entry : entries)
    if (entry.is_folder)
      classes.push_back(entry.path);
    else
      files.emplace_back(base_name(entry.path));
  if (!classes.empty()) return index_classes(shard, classes, modified_ns, files);
  SampleBuilder samples(shard);
  samples.head().folders.push_back({"", modified_ns});
  for (const std::string& file : files) HEADRACE_TRY(samples.add(file, -1));
  return samples.finish();
}

}  // namespace headrace
