// SPDX-License-Identifier: Apache-2.0
//
// zip: an archive of files as the folder that it was made from, read in place.  The layout is in
// zip.h; what files become is as of a folder (files/folders.h).
//
//   stored members     read where they lie
//   deflated members   a unit each, with its local header, that opens as a whole
//
// A folder that holds all the rest is the root itself: "data.zip" with "data/cat/1.jpg" has the
// class "cat".

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "format/files/folders.h"
#include "format/zip/zip.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".zip"};
constexpr uint32_t kInflate = 1;

// "a/../b", "/a", "a\b" and the like name nothing in a folder.
bool is_inside(std::string_view name) {
  if (name.empty() || name.starts_with('/') || name.find('\0') != std::string_view::npos ||
      name.find("//") != std::string_view::npos)
    return false;
  for (std::string_view rest = name; !rest.empty();) {
    const std::string_view piece = rest.substr(0, rest.find('/'));
    if (piece == "." || piece == "..") return false;
    rest.remove_prefix(std::min(piece.size() + 1, rest.size()));
  }
  return true;
}

// One thread at a time.
class ZipTree final : public FolderTree {
 public:
  explicit ZipTree(const ShardInput& shard) : zip_(shard) {}

  Status open() {
    HEADRACE_ASSIGN(members_, zip_.members());
    for (size_t m = 0; m < members_.size(); ++m) {
      const std::string& name = members_[m].name;
      if (!is_inside(name)) {
        if (skipped_++ == 0) first_skipped_ = name;
        continue;
      }
      const bool is_folder = name.ends_with('/');
      const std::string path = is_folder ? name.substr(0, name.size() - 1) : name;
      HEADRACE_TRY(add(path, is_folder, m));
    }
    return {};
  }

  // The folder `part`, "" being the root; paths that are listed count from it.
  Result<TreeEntry> find_root(const std::string& part) {
    std::string root = part;
    if (!part.empty()) {
      if (!folders_.contains(part)) {
        // The one folder around all may be left away.
        const std::string around = wrapper("");
        const std::string inner = around.empty() ? part : around + '/' + part;
        if (!folders_.contains(inner))
          return not_found(fmt::format("there is no folder '{}' in the archive", part));
        root = inner;
      }
    } else {
      root = wrapper("");
    }
    prefix_ = root.empty() ? "" : root + '/';
    return TreeEntry{.path = "", .is_folder = true};
  }

  Result<std::vector<TreeEntry>> list(const TreeEntry& folder, int64_t& modified_ns) override {
    modified_ns = 0;
    std::string path = prefix_ + folder.path;
    while (path.ends_with('/')) path.pop_back();
    std::vector<TreeEntry> out;
    const auto found = folders_.find(path);
    if (found == folders_.end()) return out;
    for (const auto& [name, entry] : found->second)
      out.push_back(
          {folder.path.empty() ? name : folder.path + '/' + name, entry.is_folder, entry.member});
    return out;
  }

  Status add_value(const TreeEntry& file, uint32_t field, PartBuilder& part) override {
    ZipMember& member = members_[file.place];
    HEADRACE_TRY(zip_.locate(member));
    if (!member.is_deflated()) {
      part.add_extent(field, {.offset = member.data, .stored = member.stored});
      return {};
    }
    const uint64_t begin = member.header;
    part.add_extent(field, {.offset = begin,
                            .stored = member.data - begin + member.stored + member.descriptor,
                            .decoded = member.size,
                            .begin = 0,
                            .length = member.size,
                            .encoding = kInflate});
    return {};
  }

  std::vector<std::string> notices() const override {
    if (skipped_ == 0) return {};
    return {fmt::format("{} members lie outside of any folder and are left out: the first is '{}'",
                        skipped_, first_skipped_)};
  }

 private:
  struct Entry {
    bool is_folder = false;
    uint64_t member = 0;
  };

  // Enters a path and the folders that it lies in.
  Status add(const std::string& path, bool is_folder, size_t member) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
    if (!folder.empty() && !folders_.contains(folder)) HEADRACE_TRY(add(folder, true, member));
    const auto [at, is_new] =
        folders_[folder].try_emplace(path.substr(slash + 1), Entry{is_folder, member});
    if (!is_new && !(is_folder && at->second.is_folder))
      return corrupt(fmt::format("the archive holds '{}' twice", path));
    if (is_folder) folders_.try_emplace(path);
    return {};
  }

  // The innermost folder that holds everything; "" where the root holds more than one thing.
  std::string wrapper(std::string folder) const {
    for (;;) {
      const auto found = folders_.find(folder);
      if (found == folders_.end()) return folder;
      const std::pair<const std::string, Entry>* only = nullptr;
      size_t counted = 0;
      for (const auto& entry : found->second) {
        if (entry.first.starts_with('.') || entry.first == "__MACOSX") continue;
        only = &entry;
        ++counted;
      }
      if (counted != 1 || !only->second.is_folder) return folder;
      folder = folder.empty() ? only->first : folder + '/' + only->first;
    }
  }

  ZipFile zip_;
  std::vector<ZipMember> members_;
  std::map<std::string, std::map<std::string, Entry>> folders_;
  std::string prefix_;  // of the root that was chosen, with a slash
  uint64_t skipped_ = 0;
  std::string first_skipped_;
};

Result<PartPointer> index(const ShardInput& shard) {
  ZipTree tree(shard);
  HEADRACE_TRY(tree.open());
  HEADRACE_ASSIGN(const TreeEntry root, tree.find_root(shard.info.part));
  return index_tree(tree, root, shard, 1,
                    PartHead{.format = "zip",
                             .shard_bytes = shard.info.bytes,
                             .modified_ns = shard.info.modified_ns,
                             .has_openings = true});
}

// A zip archive that no other format takes for its own.
bool sniff(Bytes head) {
  return head.size() >= 4 &&
         (load_le<uint32_t>(head) == kZipLocal || load_le<uint32_t>(head) == kZipEnd);
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  if (unit.encoding != kInflate) return corrupt("no such encoding in a zip archive");
  return open_zip_member(stored, unit.decoded_bytes, decoded);
}

}  // namespace

extern constinit const Format zip_format{
    .name = "zip",
    .doc =
        "a zip archive as the folder that it holds, read in place; `data.zip#train`: a folder in "
        "it",
    .suffixes = kSuffixes,
    .takes_parts = true,
    .guards_lengths = false,
    .sniff = sniff,
    .index = index,
    .decode_unit = decode_unit,
};

}  // namespace headrace
