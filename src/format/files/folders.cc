// SPDX-License-Identifier: Apache-2.0
#include "format/files/folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/parallel.h"
#include "format/files/grouping.h"
#include "format/splits.h"
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
  // Macs put a folder of that name into every zip.
  return !name.starts_with('.') && !name.ends_with(kSidecarSuffix) && name != "__MACOSX";
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
    if (is_remote_) {  // no server says when a folder changed, and a question is a round trip
      HEADRACE_ASSIGN(const std::vector<FileInfo> found, shard_.store.list(path));
      modified_ns = 0;
      return entries_of(found);
    }
    const int64_t give_up = now_ns() + 5 * kTickNs;
    for (;;) {
      const int64_t now = now_ns();
      HEADRACE_ASSIGN(const FileInfo info, shard_.store.stat(path));
      HEADRACE_ASSIGN(const std::vector<FileInfo> found, shard_.store.list(path));
      const int64_t age = now - info.modified_ns;
      if (age >= 0 && age < kTickNs && now < give_up) continue;
      modified_ns = info.modified_ns;
      return entries_of(found);
    }
  }

  Status add_value(const TreeEntry& file, uint32_t field, PartBuilder& part) override {
    part.add_whole_file(field, part.add_file(file.path));
    return {};
  }

 private:
  std::vector<TreeEntry> entries_of(const std::vector<FileInfo>& found) const {
    std::vector<TreeEntry> entries;
    for (const FileInfo& entry : found)
      entries.push_back({entry.path.substr(root_.size()), entry.is_folder});
    return entries;
  }

  const ShardInput& shard_;
  const std::string root_;  // with a slash
  const bool is_remote_ = shard_.store.cost(shard_.info.path).is_remote();
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

// The files of one listing as samples.
struct GroupedListing {
  Listing listing;
  FileGroups groups;

  bool has_pictures() const {
    return std::any_of(listing.files.begin(), listing.files.end(),
                       [](const TreeEntry& file) { return is_picture_path(file.path); });
  }
  void group(bool with_pictures) {
    std::vector<std::string_view> paths;
    paths.reserve(listing.files.size());
    for (const TreeEntry& file : listing.files) paths.emplace_back(file.path);
    groups = group_files(paths, with_pictures);
  }
};

// Grouped files become samples.  One thread at a time.
class SampleBuilder {
 public:
  SampleBuilder(FolderTree& tree, const ShardInput& shard, PartHead head, bool with_pictures)
      : tree_(tree), shard_(shard), part_(std::move(head)), with_pictures_(with_pictures) {}

  PartHead& head() { return part_.head(); }
  void add_folder(FolderStamp stamp) {
    if (shard_.info.is_folder) head().folders.push_back(std::move(stamp));
  }

  // `label` < 0: none.
  Status add_all(const GroupedListing& from, int64_t label) {
    const std::vector<TreeEntry>& files = from.listing.files;
    for (const uint32_t file : from.groups.left_out)
      if (left_out_++ == 0) first_left_out_ = files[file].path;
    for (size_t s = 0; s < from.groups.size(); ++s) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      HEADRACE_TRY(add(files, from.groups.of(s), label));
      const std::string& lead = files[from.groups.of(s)[0]].path;
      part_.end_sample(from.groups.keeps_extension[s] ? lead : split_stem(lead).key);
    }
    return {};
  }

  Result<PartPointer> finish() {
    if (left_out_ > 0)
      head().notices.push_back(
          fmt::format("{} files {}, and are left out: the first is '{}'", left_out_,
                      with_pictures_ ? "are neither pictures nor named like one" : "are no samples",
                      first_left_out_));
    for (std::string& notice : tree_.notices()) head().notices.push_back(std::move(notice));
    return part_.finish();
  }

 private:
  Status add(const std::vector<TreeEntry>& files, std::span<const uint32_t> sample, int64_t label) {
    fields_.clear();
    for (const uint32_t number : sample) {
      const TreeEntry& file = files[number];
      const uint32_t field = part_.field(normal_extension(split_stem(file.path).extension));
      const auto twice = std::find_if(fields_.begin(), fields_.end(),
                                      [field](const auto& other) { return other.first == field; });
      if (twice != fields_.end())
        return corrupt(fmt::format("'{}' and '{}' would be one field of one sample",
                                   files[twice->second].path, file.path));
      fields_.emplace_back(field, number);
      if (Status s = tree_.add_value(file, field, part_); !s.ok()) return s.with(file.path);
    }
    if (label >= 0) part_.add_int(part_.field("cls", Kind::kInt, Storage::kInline), label);
    return {};
  }

  FolderTree& tree_;
  const ShardInput& shard_;
  PartBuilder part_;
  const bool with_pictures_;
  std::vector<std::pair<uint32_t, uint32_t>> fields_;  // of the sample at hand, and their files
  uint64_t left_out_ = 0;
  std::string first_left_out_;
};

// The files below each of the class folders.
Result<std::vector<GroupedListing>> list_classes(FolderTree& tree, const ShardInput& shard,
                                                 unsigned threads,
                                                 const std::vector<TreeEntry>& classes) {
  std::vector<GroupedListing> out(classes.size());
  HEADRACE_TRY(parallel_for(classes.size(), threads, [&](size_t c) {
    return Walker(tree, shard, out[c].listing).walk(classes[c], 1);
  }));
  return out;
}

bool has_pictures(const std::vector<GroupedListing>& listings) {
  return std::any_of(listings.begin(), listings.end(),
                     [](const GroupedListing& listing) { return listing.has_pictures(); });
}

Status group_all(std::vector<GroupedListing>& listings, unsigned threads, bool with_pictures,
                 PartHead& head) {
  HEADRACE_TRY(parallel_for(listings.size(), threads, [&](size_t c) {
    listings[c].group(with_pictures);
    return Status();
  }));
  head.own_keys = head.whole_files &&
                  std::any_of(listings.begin(), listings.end(), [](const GroupedListing& listing) {
                    return listing.groups.has_twins;
                  });
  return {};
}

// `strays`: files beside the class folders.
Result<PartPointer> index_classes(const std::vector<TreeEntry>& classes,
                                  std::vector<GroupedListing>& listings, SampleBuilder& samples,
                                  const std::vector<TreeEntry>& strays) {
  for (size_t c = 0; c < classes.size(); ++c) {
    HEADRACE_TRY(samples.add_all(listings[c], static_cast<int64_t>(c)));
    samples.head().classes.emplace_back(base_name(classes[c].path));
    for (FolderStamp& folder : listings[c].listing.folders) samples.add_folder(std::move(folder));
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
  std::vector<TreeEntry> classes;
  std::vector<GroupedListing> here(1);
  std::vector<TreeEntry>& files = here[0].listing.files;
  for (TreeEntry& entry : entries) (entry.is_folder ? classes : files).push_back(std::move(entry));
  std::vector<std::string> splits;
  for (const TreeEntry& entry : classes)
    if (is_split_name(base_name(entry.path))) splits.emplace_back(base_name(entry.path));
  if (!classes.empty() && splits.size() == classes.size() && !has_pictures(here))
    return which_split(shard.info.path, splits);
  HEADRACE_ASSIGN(std::vector<GroupedListing> below, list_classes(tree, shard, threads, classes));
  // Pictures beside folders that hold none are the data set themselves.
  const bool is_flat = classes.empty() || (has_pictures(here) && !has_pictures(below));
  std::vector<GroupedListing>& listings = is_flat ? here : below;
  const bool with_pictures = has_pictures(listings);
  HEADRACE_TRY(group_all(listings, threads, with_pictures, head));
  SampleBuilder samples(tree, shard, std::move(head), with_pictures);
  samples.add_folder({"", modified_ns});
  if (!is_flat) return index_classes(classes, below, samples, files);
  HEADRACE_TRY(samples.add_all(here[0], -1));
  for (GroupedListing& folder : below)
    for (FolderStamp& stamp : folder.listing.folders) samples.add_folder(std::move(stamp));
  if (!below.empty())
    samples.head().notices.push_back(
        fmt::format("{} folders hold no picture, and are left out: the first is '{}'",
                    classes.size(), classes[0].path));
  return samples.finish();
}

Result<PartPointer> index_folder(const ShardInput& shard) {
  StoreTree tree(shard);
  // Of a server each listing is a round trip: many wait at a time.
  constexpr unsigned kWaiting = 32;
  const bool is_remote = shard.store.cost(shard.info.path).is_remote();
  return index_tree(tree, {.is_folder = true}, shard,
                    is_remote ? std::max(shard.threads, kWaiting) : shard.threads,
                    PartHead{.format = "files",
                             .modified_ns = shard.info.modified_ns,
                             .has_files = true,
                             .whole_files = true});
}

}  // namespace headrace
