// SPDX-License-Identifier: Apache-2.0
#include "format/squashfs/image.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
namespace {

// Types of entries.
enum class EntryType : uint16_t { kFolder = 1, kFile = 2, kLink = 3, kSocket = 7 };

constexpr uint32_t kNoFragment = ~uint32_t{0};
constexpr uint64_t kFragmentsInBlock = 512;
constexpr uint32_t kPlain = 1u << 24;
constexpr uint64_t kMostName = 256;
constexpr uint32_t kMostInRun = 256;
constexpr uint64_t kMostHoles = uint64_t{1} << 30;  // of one file: memory that no byte stands for
// What a small image may list; a large one as many as it has bytes, at most.
constexpr uint64_t kFewEntries = 65536;

template <size_t N>
using Raw = std::array<std::byte, N>;

// A name that would leave its folder, or end before its end.
bool is_name(std::string_view name) {
  return name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

// The pieces of one file on their way into the part; plain blocks that lie one behind the
// other are one.
class SquashTree::Pieces {
 public:
  Pieces(PartBuilder& part, uint32_t field) : part_(part), field_(field) {}

  void add_plain(uint64_t offset, uint64_t bytes) {
    if (run_.stored > 0 && run_.offset + run_.stored == offset) {
      run_.stored += bytes;
      return;
    }
    end_run();
    run_ = {.offset = offset, .stored = bytes};
  }
  void add_opened(const PartValue& value) {
    end_run();
    put(value);
  }
  void finish() {
    end_run();
    if (first_) put({});  // an empty file
  }

 private:
  void end_run() {
    if (run_.stored > 0) put(run_);
    run_ = {};
  }
  void put(PartValue value) {
    value.continues = !first_;
    first_ = false;
    part_.add_extent(field_, value);
  }

  PartBuilder& part_;
  const uint32_t field_;
  PartValue run_ = {};
  bool first_ = true;
};

SquashTree::SquashTree(const ShardInput& shard, const SquashSuperblock& super)
    : shard_(shard),
      super_(super),
      inodes_(shard, super.packing, super.inodes, super.folders),
      folders_(shard, super.packing, super.folders, super.used),
      fragments_(shard, super.packing, 0, super.used),
      pointers_(shard) {}

Status SquashTree::count(std::string_view what, uint64_t& counter) const {
  if (++counter <= kFewEntries || counter - kFewEntries <= super_.used) return {};
  return corrupt(fmt::format("more {} than an image of {} bytes can have", what, super_.used));
}

Status SquashTree::take_entry(const std::string& prefix, uint64_t inode_block, SquashPlace& at,
                              uint64_t& left, std::vector<TreeEntry>& out) {
  Raw<8> head;
  if (left < head.size()) return corrupt("the listing of a folder ends within an entry");
  HEADRACE_TRY(folders_.read(at, head));
  left -= head.size();
  const Bytes b(head);
  const auto type = load_le<uint16_t>(b.subspan(4));
  const uint64_t length = load_le<uint16_t>(b.subspan(6)) + uint64_t{1};
  if (length > kMostName || length > left)
    return corrupt(fmt::format("a name of {} bytes in the listing of a folder", length));
  std::string name(length, '\0');
  HEADRACE_TRY(folders_.read(at, std::as_writable_bytes(std::span(name))));
  left -= length;
  if (!is_name(name)) return corrupt("a name in the listing of a folder is none");
  HEADRACE_TRY(count("entries of folders", entries_));
  const bool is_folder = type == static_cast<uint16_t>(EntryType::kFolder);
  if (is_folder || type == static_cast<uint16_t>(EntryType::kFile)) {
    out.push_back({prefix + name, is_folder, inode_block << 16 | load_le<uint16_t>(b)});
    return {};
  }
  if (type < static_cast<uint16_t>(EntryType::kLink) ||
      type > static_cast<uint16_t>(EntryType::kSocket))
    return corrupt(fmt::format("'{}{}' is of no type: {}", prefix, name, type));
  if (!name.starts_with('.') && skipped_++ == 0) first_skipped_ = prefix + name;
  return {};
}

Status SquashTree::take_run(const std::string& prefix, SquashPlace& at, uint64_t& left,
                            std::vector<TreeEntry>& out) {
  Raw<12> head;
  if (left < head.size()) return corrupt("the listing of a folder ends within the head of a run");
  HEADRACE_TRY(folders_.read(at, head));
  left -= head.size();
  const auto more = load_le<uint32_t>(head);
  if (more >= kMostInRun)
    return corrupt(
        fmt::format("a run of {} entries in the listing of a folder", uint64_t{more} + 1));
  const uint64_t inode_block = load_le<uint32_t>(Bytes(head).subspan(4));
  for (uint32_t i = 0; i <= more; ++i) HEADRACE_TRY(take_entry(prefix, inode_block, at, left, out));
  return {};
}

Result<std::vector<TreeEntry>> SquashTree::entries_of(const TreeEntry& folder) {
  FolderInode inode;
  HEADRACE_TRY(folder_inode(folder.place, inode));
  const std::string prefix = folder.path.empty() ? "" : folder.path + '/';
  std::vector<TreeEntry> entries;
  SquashPlace at = inode.listing;
  for (uint64_t left = inode.size; left > 0;) {
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    HEADRACE_TRY(take_run(prefix, at, left, entries));
  }
  const auto by_path = [](const TreeEntry& a, const TreeEntry& b) { return a.path < b.path; };
  std::sort(entries.begin(), entries.end(), by_path);
  const auto twice =
      std::adjacent_find(entries.begin(), entries.end(),
                         [](const TreeEntry& a, const TreeEntry& b) { return a.path == b.path; });
  if (twice != entries.end()) return corrupt(fmt::format("'{}' is there twice", twice->path));
  return entries;
}

Result<std::vector<TreeEntry>> SquashTree::list(const TreeEntry& folder, int64_t&) {
  if (!listed_.insert(folder.place).second)
    return corrupt(fmt::format("folder '{}' is another one, or one above it", folder.path));
  Result<std::vector<TreeEntry>> entries = entries_of(folder);
  if (!entries.ok()) return entries.status().with(fmt::format("folder '{}'", folder.path));
  return entries;
}

Result<TreeEntry> SquashTree::find_folder(std::string_view path) {
  TreeEntry folder{.is_folder = true, .place = super_.root};
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (name.empty()) continue;
    HEADRACE_ASSIGN(const std::vector<TreeEntry> entries, entries_of(folder));
    std::string there;
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const TreeEntry& entry) {
      if (entry.is_folder && there.size() < 200) there += ' ' + entry.path;
      return entry.is_folder && entry.path == name;
    });
    if (found == entries.end())
      return not_found(fmt::format("the image has no folder '{}'; there is:{}", path,
                                   there.empty() ? " none" : there));
    folder.place = found->place;
  }
  skipped_ = 0;
  return folder;
}

Status SquashTree::add_blocks(FileInode& inode, Pieces& pieces) {
  const uint64_t size = super_.block_size;
  const bool has_rest = inode.size % size != 0 && inode.fragment == kNoFragment;
  const uint64_t blocks = inode.size / size + (has_rest ? 1 : 0);
  uint64_t holes = 0;
  for (uint64_t i = 0; i < blocks; ++i) {
    Raw<4> raw;
    HEADRACE_TRY(count("blocks", pieces_));
    HEADRACE_TRY(inodes_.read(inode.sizes, raw));
    const auto word = load_le<uint32_t>(raw);
    const uint64_t stored = word & (kPlain - 1);
    const uint64_t length = has_rest && i + 1 == blocks ? inode.size % size : size;
    const bool plain = (word & kPlain) != 0;
    if (word >= 2 * kPlain || stored > size || (plain && stored != length) ||
        stored > super_.used || inode.blocks_at > super_.used - stored)
      return corrupt(
          fmt::format("block {} would have {} bytes at offset {}", i, stored, inode.blocks_at));
    if (word == 0 && (holes += length) > kMostHoles)
      return unsupported("the file has more than 1 GiB of holes");
    if (plain)
      pieces.add_plain(inode.blocks_at, stored);
    else
      pieces.add_opened(
          {.offset = word == 0 ? 0 : inode.blocks_at,
           .stored = stored,
           .decoded = word == 0 ? size : length,
           .length = length,
           .encoding = word == 0 ? kSquashHole : static_cast<uint32_t>(super_.packing)});
    inode.blocks_at += stored;
  }
  return {};
}

Status SquashTree::add_fragment(const FileInode& inode, Pieces& pieces) {
  const uint64_t length = inode.size % super_.block_size;
  if (inode.fragment == kNoFragment || length == 0) return {};
  if (inode.fragment >= super_.fragments)
    return corrupt(
        fmt::format("fragment {} of {} holds its end", inode.fragment, super_.fragments));
  HEADRACE_TRY(count("blocks", pieces_));
  Bytes pointer;
  HEADRACE_TRY(
      pointers_.bytes(super_.fragment_table + inode.fragment / kFragmentsInBlock * 8, 8, pointer));
  SquashPlace at{load_le<uint64_t>(pointer), inode.fragment % kFragmentsInBlock * 16};
  Raw<16> raw;
  HEADRACE_TRY(fragments_.read(at, raw));
  const auto offset = load_le<uint64_t>(raw);
  const auto word = load_le<uint32_t>(Bytes(raw).subspan(8));
  const uint64_t stored = word & (kPlain - 1);
  const bool plain = (word & kPlain) != 0;
  const uint64_t room = plain ? stored : super_.block_size;
  if (word >= 2 * kPlain || stored == 0 || stored > super_.block_size || stored > super_.used ||
      offset > super_.used - stored || inode.in_fragment > room ||
      length > room - inode.in_fragment)
    return corrupt(fmt::format("{} bytes at {} of fragment {}, which has {} at offset {}", length,
                               inode.in_fragment, inode.fragment, stored, offset));
  if (plain)
    pieces.add_plain(offset + inode.in_fragment, length);
  else
    pieces.add_opened({.offset = offset,
                       .stored = stored,
                       .decoded = super_.block_size,
                       .begin = inode.in_fragment,
                       .length = length,
                       .encoding = static_cast<uint32_t>(super_.packing) | kSquashFragment});
  return {};
}

Status SquashTree::add_value(const TreeEntry& file, uint32_t field, PartBuilder& part) {
  FileInode inode;
  HEADRACE_TRY(file_inode(file.place, inode));
  Pieces pieces(part, field);
  HEADRACE_TRY(add_blocks(inode, pieces));
  HEADRACE_TRY(add_fragment(inode, pieces));
  pieces.finish();
  return {};
}

std::vector<std::string> SquashTree::notices() const {
  if (skipped_ == 0) return {};
  return {
      fmt::format("{} links and devices are no samples, the first '{}'", skipped_, first_skipped_)};
}

}  // namespace headrace
