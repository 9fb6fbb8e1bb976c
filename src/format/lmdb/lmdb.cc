// SPDX-License-Identifier: Apache-2.0
//
// LMDB: a B-tree of keys and values in one file, `x.lmdb` or `data.mdb` of a folder.
//
//   +--------+--------+- - - - - - - - - - - - - - - - - - - - - - -+
//   | meta 0 | meta 1 | branch pages, leaf pages, runs of overflow  |     pages, lmdb_page.h
//   +--------+--------+- - - - - - - - - - - - - - - - - - - - - - -+
//
// Our own reader (lmdb_tree.h) walks the tree once; values are read where they lie after that.  No
// lock file is needed or made, and nothing is mapped: nobody may write to the file meanwhile. There
// is no checksum; the counts of the tree and the order of its keys must be right.
//
//   image-000000001   numbered entries of several fields (numbered.h)
//   keys `key.field`  members of samples, as in a tar (members.h)
//   other keys        where most are such, each entry is a sample with the field `data`
//   path#name         the sub-database of that name; else the entries whose keys begin so

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "format/format.h"
#include "format/lmdb/numbered.h"
#include "format/lmdb/tree.h"
#include "format/lmdb/writer.h"
#include "format/members.h"
#include "format/records.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".lmdb", ".mdb"};
constexpr std::string_view kFolderFile = "data.mdb";
constexpr std::string_view kDataField = "data";
constexpr size_t kMaxNamed = 16;  // sub-databases that an error lists

bool is_printable(Bytes key) {
  return std::none_of(key.begin(), key.end(),
                      [](std::byte b) { return b < std::byte{' '} || b == std::byte{0x7f}; }) &&
         valid_utf8_prefix(key) == key.size();
}

std::string key_text(Bytes key, uint16_t tree_flags) {
  if ((tree_flags & kLmdbIntegerKey) != 0 && (key.size() == 4 || key.size() == 8))
    return fmt::format("{}", key.size() == 4 ? load_le<uint32_t>(key) : load_le<uint64_t>(key));
  if (is_printable(key)) return std::string(as_text(key));
  std::string hex;
  for (const std::byte b : key) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  return hex;
}

struct SubDatabases {
  std::vector<std::string> names = {};  // the first ones
  uint64_t count = 0;
  std::optional<LmdbTree> wanted = {};

  std::string text() const {
    std::string out;
    for (const std::string& name : names) out.append(out.empty() ? "" : ", ").append(name);
    if (count > names.size()) out += fmt::format(" and {} more", count - names.size());
    return out;
  }
};

// `__len__` and `__keys__`: what scripts that write an LMDB note of it, beside the samples.
bool is_bookkeeping(std::string_view key) {
  return key.size() > 4 && key.starts_with("__") && key.ends_with("__");
}

PartHead head_of(const ShardInput& shard, const LmdbFile& file) {
  return {.format = "lmdb",
          .shard_bytes = shard.info.bytes,
          .modified_ns = shard.info.modified_ns,
          .align = file.page_bytes(),
          .gap = kLmdbPageHead};
}

// Walks a tree once.  One thread at a time.
class LmdbIndexer {
 public:
  // Only keys that begin with `prefix` are taken.  `grouped`: keys are names of members; where it
  // is not given the first key tells, and the part is worth nothing if most keys say otherwise.
  LmdbIndexer(const ShardInput& shard, LmdbFile& file, const LmdbTree& tree,
              std::string_view prefix, std::optional<bool> grouped)
      : shard_(shard),
        file_(file),
        tree_(tree),
        prefix_(as_bytes(prefix)),
        grouped_(grouped),
        part_(head_of(shard, file)) {}

  Status walk() {
    const Status status = file_.walk(tree_, [this](const LmdbEntry& entry) { return take(entry); });
    if (status.ok() || grouped_.value_or(true))
      return status.ok() ? status : members_.blame(status, shard_.info.path);
    return after_last_good(status, shard_.info.path, part_.samples(), last_alone_);
  }

  // What is asked after walk().
  bool is_right() const { return !grouped_ || *grouped_ == wants_groups(); }
  bool wants_groups() const { return member_keys_ > 0 && member_keys_ >= other_keys_; }
  uint64_t taken() const { return member_keys_ + other_keys_; }
  const SubDatabases& subs() const { return subs_; }
  std::string keys_text() const {
    if (last_key_.empty()) return "it has no keys";
    return fmt::format("its keys go from '{}' to '{}'", key_text(first_key_, tree_.flags),
                       key_text(last_key_, tree_.flags));
  }

  bool is_numbered() const { return numbered_.fit(); }
  Result<PartPointer> finish_numbered() { return numbered_.finish(head_of(shard_, file_)); }

  Result<PartPointer> finish() {
    if (!grouping_.ok()) return members_.blame(grouping_, shard_.info.path);
    members_.end_sample();
    if (const auto twice = members_.find_twice())
      return corrupt(fmt::format("a key came before, in the page at offset {}, with other samples "
                                 "between: a key with a dot in its folder names?",
                                 twice->first))
          .at(twice->second)
          .in_file(shard_.info.path);
    members_.note_skipped("keys are not of the form key.field and are no part of a sample");
    if (bookkeeping_ > 0)
      part_.head().notices.push_back(
          fmt::format("{} keys like '{}' are about the database and no samples: left out",
                      bookkeeping_, first_bookkeeping_));
    if (subs_.count > 0 && taken() > 0)
      part_.head().notices.push_back(fmt::format(
          "sub-databases are beside these entries: {} (open one as path#name)", subs_.text()));
    return part_.finish();
  }

 private:
  Status take(const LmdbEntry& entry) {
    if ((entry.flags & kLmdbDupData) != 0)
      return corrupt("a key with several values in a database that has none");
    if ((entry.flags & kLmdbSubData) != 0) return take_sub(entry);
    note_key(entry.key);
    if (entry.key.size() < prefix_.size() ||
        !std::equal(prefix_.begin(), prefix_.end(), entry.key.begin()))
      return {};
    const bool is_text = is_printable(entry.key) && (tree_.flags & kLmdbIntegerKey) == 0;
    const bool named = is_text && is_member(split_name(as_text(entry.key)));
    if (is_text && !named && prefix_.empty() && is_bookkeeping(as_text(entry.key))) {
      if (bookkeeping_++ == 0) first_bookkeeping_ = as_text(entry.key);
      return {};
    }
    ++(named ? member_keys_ : other_keys_);
    if (!grouped_) grouped_ = named;
    LmdbEntry checked = entry;
    HEADRACE_TRY(file_.check_run(checked));
    const PartValue value{.offset = checked.value_at, .stored = checked.value_bytes};
    numbered_.see(is_text ? as_text(entry.key) : "", value);
    if (*grouped_)
      group(checked, named, value);
    else
      add_alone(checked, value);
    return {};
  }

  // An error of grouping is none where it turns out that most keys are no members.
  void group(const LmdbEntry& entry, bool named, const PartValue& value) {
    if (!named)
      members_.skip(key_text(entry.key, tree_.flags));
    else if (grouping_.ok())
      grouping_ = members_.add(as_text(entry.key), entry.page_at, value);
  }

  void add_alone(const LmdbEntry& entry, const PartValue& value) {
    part_.add_extent(part_.field(kDataField), value);
    last_alone_ = key_text(entry.key, tree_.flags);
    part_.end_sample(last_alone_);
  }

  Status take_sub(const LmdbEntry& entry) {
    if (entry.value.size() != sizeof(LmdbTree))
      return corrupt("a sub-database whose record is too long or too short");
    if (entry.key.size() == prefix_.size() && !prefix_.empty() &&
        std::equal(prefix_.begin(), prefix_.end(), entry.key.begin()))
      subs_.wanted = load_le<LmdbTree>(entry.value);
    if (subs_.names.size() < kMaxNamed) subs_.names.push_back(key_text(entry.key, 0));
    ++subs_.count;
    return {};
  }

  void note_key(Bytes key) {
    last_key_.assign(key.begin(), key.end());
    if (first_key_.empty()) first_key_ = last_key_;
  }

  const ShardInput& shard_;
  LmdbFile& file_;
  const LmdbTree tree_;
  const Bytes prefix_;
  std::optional<bool> grouped_;
  PartBuilder part_;
  MemberGrouper members_{part_};
  NumberedEntries numbered_;
  Status grouping_;
  uint64_t member_keys_ = 0;
  uint64_t other_keys_ = 0;
  uint64_t bookkeeping_ = 0;
  std::string first_bookkeeping_;
  SubDatabases subs_;
  std::string last_alone_;                       // key of the last sample that is no group
  std::vector<std::byte> first_key_, last_key_;  // of all entries, for errors
};

Status no_such_part(const LmdbIndexer& seen, std::string_view part) {
  return not_found(
      fmt::format("there is no sub-database '{}' and no key begins with it; "
                  "sub-databases: {}; {}",
                  part, seen.subs().count == 0 ? "none" : seen.subs().text(), seen.keys_text()));
}

Result<PartPointer> index_tree(const ShardInput& shard, LmdbFile& file, const LmdbTree& tree,
                               std::string_view part, bool is_main) {
  LmdbIndexer guess(shard, file, tree, part, std::nullopt);
  HEADRACE_TRY(guess.walk());
  if (guess.subs().count > 0 && !is_main)
    return corrupt("a sub-database within a sub-database").in_file(shard.info.path);
  if (guess.subs().wanted) return index_tree(shard, file, *guess.subs().wanted, "", false);
  if (guess.taken() == 0 && !part.empty()) return no_such_part(guess, part);
  if (guess.taken() == 0 && guess.subs().count > 0)
    return invalid(fmt::format("all data lie in sub-databases: {}; open one as path#name",
                               guess.subs().text()));
  if (guess.is_numbered()) return guess.finish_numbered();
  if (guess.is_right()) return guess.finish();
  LmdbIndexer again(shard, file, tree, part, guess.wants_groups());
  HEADRACE_TRY(again.walk());
  return again.finish();
}

Result<PartPointer> index(const ShardInput& shard) {
  LmdbFile file(shard);
  if (Status s = file.open(); !s.ok()) return s.in_file(shard.info.path);
  return index_tree(shard, file, file.main(), shard.info.part, true);
}

Result<std::vector<std::string>> claim(const Store&, const std::string&,
                                       std::span<const FileInfo> entries) {
  for (const FileInfo& entry : entries)
    if (!entry.is_folder && entry.path.substr(entry.path.rfind('/') + 1) == kFolderFile)
      return std::vector<std::string>{entry.path};
  return std::vector<std::string>();
}

bool sniff(Bytes head) {
  return head.size() >= kLmdbPageHead + kLmdbMetaBytes &&
         load_le<uint32_t>(head.subspan(kLmdbPageHead)) == kLmdbMagic &&
         (load_le<LmdbPageHead>(head).flags & kLmdbPageKinds) == kLmdbMeta;
}

}  // namespace

extern constinit const Format lmdb_format{
    .name = "lmdb",
    .doc =
        "LMDB databases, one file or a folder with data.mdb: keys `key.field` are grouped as in a "
        "tar, other entries are `data`; path#name is a sub-database or the keys that begin so",
    .suffixes = kSuffixes,
    .takes_parts = true,
    .unique_keys = true,
    .sorts_keys = true,
    .rewrites = true,
    .guards_lengths = false,
    .sniff = sniff,
    .claim = claim,
    .index = index,
    .create = make_lmdb_writer,
    .can_hold = [](const Schema& schema) { return members_can_hold("LMDB", schema); },
};

}  // namespace headrace
