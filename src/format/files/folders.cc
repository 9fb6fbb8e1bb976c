// SPDX-License-Identifier: Apache-2.0
#include "format/files/folders.h"

#include <fmt/format.h>

#include <chrono>

#include "base/parallel.h"
#include "index/names.h"
#include "index/sidecar.h"
#include "storage/paths.h"

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

bool is_data(const TreeEntry& entry) {
  const std::string_view name = base_name(entry.path);
  return !name.starts_with('.') && !name.ends_with(kSidecarSuffix);
}

// A folder of the store.
class StoreTree final : public FolderTree {
 public:
  explicit StoreTree(const ShardInput& shard)
      : shard_(shard), root_(shard.info.path + (shard.info.path.ends_with('/') ? "" : "/")) {}

  // Lists again while the folder's time is younger than a tick, but not for ever: the clock may
  // be another machine's.
  Result<std::vector<TreeEntry>> list(const TreeEntry& folder, int64_t& modified_ns) override {
    const std::string path = folder.path.empty() ? shard_.info.path : root_ + folder.path;
    const int64_t give_up = now_ns() + 5 * kTickNs;
    for (;;) {
      const int64_t now = now_ns();
      HEADRACE_ASSIGN(const FileInfo info, shard_.store.stat(path));
      HEADRACE_ASSIGN(const std::vector<FileInfo> found, shard_.store.list(path));
      const int64_t age = now - info.modified_ns;
      if (age >= 0 && age < kTickNs && now < give_up) continue;
      modified_ns = info.modified_ns;
      std::vector<TreeEntry> entries;
      for (const FileInfo& entry : found)
        entries.push_back({entry.path.substr(root_.size()), entry.is_folder});
      return entries;
    }
  }

  Status add_value(const TreeEntry& file, uint32_t field, PartBuilder& part) override {
    part.add_whole_file(field, part.add_file(file.path));
    return {};
  }

 private:
  const ShardInput& shard_;
  const std::string root_;  // with a slash
};

// The entries that count.
Result<std::vector<TreeEntry>> list_data(FolderTree& tree, const TreeEntry& folder,
                                         int64_t& modified_ns) {
  HEADRACE_ASSIGN(std::vector<TreeEntry> entries, tree.list(folder, modified_ns));
  std::erase_if(entries, [](const TreeEntry& entry) { return !is_data(entry); });
  return entries;
}

// The files below one folder: its own first, then its sub-folders', so that those of one
// key stand together.
struct Listing {
  std::vector<TreeEntry> files;
  std::vector<FolderStamp> folders;
};

// One thread at a time.
class Walker {
 public:
  Walker(FolderTree& tree, const ShardInput& shard, Listing& out)
      : tree_(tree), shard_(shard), out_(out) {}

  Status walk(const TreeEntry& folder, int depth) {
    if (depth > kMaxDepth)
      return corrupt(fmt::format("folders nest too deep: a loop of links? '{}'", folder.path));
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    FolderStamp stamp{folder.path};
    HEADRACE_ASSIGN(const std::vector<TreeEntry> entries,
                    list_data(tree_, folder, stamp.modified_ns));
    out_.folders.push_back(std::move(stamp));
    for (const TreeEntry& entry : entries)
      if (!entry.is_folder) out_.files.push_back(entry);
    for (const TreeEntry& entry : entries)
      if (entry.is_folder) HEADRACE_TRY(walk(entry, depth + 1));
    return {};
  }

 private:
  FolderTree& tree_;
  const ShardInput& shard_;
  Listing& out_;
};

// Files in order become samples.  One thread at a time.
class SampleBuilder {
 public:
  SampleBuilder(FolderTree& tree, const ShardInput& shard, PartHead head)
      : tree_(tree), shard_(shard), part_(std::move(head)) {}

  PartHead& head() { return part_.head(); }
  void add_folder(FolderStamp stamp) {
    if (shard_.info.is_folder) head().folders.push_back(std::move(stamp));
  }

  // `label` < 0: none.
  Status add(const TreeEntry& file, int64_t label) {
    const NameParts name = split_name(file.path);
    if (name.extension.empty()) {
      if (skipped_++ == 0) first_skipped_ = file.path;
      return {};
    }
    if (name.key != key_) end_sample();
    const uint32_t field = part_.field(normal_extension(name.extension));
    for (const auto& [other, path] : files_)
      if (other == field)
        return corrupt(
            fmt::format("'{}' and '{}' would be one field of one sample", path, file.path));
    if (files_.empty() && label >= 0)
      part_.add_int(part_.field("cls", Kind::kInt, Storage::kInline), label);
    if (Status s = tree_.add_value(file, field, part_); !s.ok()) return s.with(file.path);
    files_.emplace_back(field, file.path);
    key_ = name.key;
    return {};
  }

  Status add_all(const std::vector<TreeEntry>& files, int64_t label) {
    for (const TreeEntry& file : files) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      HEADRACE_TRY(add(file, label));
    }
    return {};
  }

  Result<PartPointer> finish() {
    end_sample();
    if (skipped_ > 0)
      head().notices.push_back(
          fmt::format("{} files have no extension and are no samples, the first '{}'", skipped_,
                      first_skipped_));
    for (std::string& notice : tree_.notices()) head().notices.push_back(std::move(notice));
    return part_.finish();
  }

 private:
  void end_sample() {
    if (!files_.empty()) part_.end_sample(key_);
    files_.clear();
  }

  FolderTree& tree_;
  const ShardInput& shard_;
  PartBuilder part_;
  std::string key_;
  std::vector<std::pair<uint32_t, std::string>> files_;  // of the sample at hand
  uint64_t skipped_ = 0;
  std::string first_skipped_;
};

// `strays`: files beside the class folders.
Result<PartPointer> index_classes(FolderTree& tree, const ShardInput& shard, unsigned threads,
                                  const std::vector<TreeEntry>& classes, SampleBuilder& samples,
                                  const std::vector<TreeEntry>& strays) {
  std::vector<Listing> listings(classes.size());
  HEADRACE_TRY(parallel_for(classes.size(), threads, [&](size_t c) {
    return Walker(tree, shard, listings[c]).walk(classes[c], 1);
  }));
  for (size_t c = 0; c < classes.size(); ++c) {
    HEADRACE_TRY(samples.add_all(listings[c].files, static_cast<int64_t>(c)));
    samples.head().classes.emplace_back(base_name(classes[c].path));
    for (FolderStamp& folder : listings[c].folders) samples.add_folder(std::move(folder));
    listings[c] = {};
  }
  if (!strays.empty())
    samples.head().notices.push_back(
        fmt::format("{} files beside the class folders are no samples, the first '{}'",
                    strays.size(), strays.front().path));
  return samples.finish();
}

}  // namespace

std::string normal_extension(std::string_view extension) {
  std::string out = lower_case(extension);
  if (out == "jpeg" || out.ends_with(".jpeg")) out.erase(out.size() - 2, 1);
  return out;
}

Status list_tree(const ShardInput& shard, FileTree& out) {
  StoreTree tree(shard);
  Listing found;
  HEADRACE_TRY(Walker(tree, shard, found).walk({.path = "", .is_folder = true}, 0));
  for (TreeEntry& entry : found.files) out.files.push_back(std::move(entry.path));
  out.folders = std::move(found.folders);
  return {};
}

Result<PartPointer> index_tree(FolderTree& tree, const TreeEntry& root, const ShardInput& shard,
                               unsigned threads, PartHead head) {
  int64_t modified_ns = 0;
  HEADRACE_ASSIGN(std::vector<TreeEntry> entries, list_data(tree, root, modified_ns));
  std::vector<TreeEntry> classes, files;
  for (TreeEntry& entry : entries) (entry.is_folder ? classes : files).push_back(std::move(entry));
  SampleBuilder samples(tree, shard, std::move(head));
  samples.add_folder({"", modified_ns});
  if (!classes.empty()) return index_classes(tree, shard, threads, classes, samples, files);
  HEADRACE_TRY(samples.add_all(files, -1));
  return samples.finish();
}

Result<PartPointer> index_folder(const ShardInput& shard) {
  StoreTree tree(shard);
  return index_tree(tree, {.is_folder = true}, shard, shard.threads,
                    PartHead{.format = "files",
                             .modified_ns = shard.info.modified_ns,
                             .has_files = true,
                             .whole_files = true});
}

}  // namespace headrace
