// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/tree.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
namespace {

constexpr uint64_t kLeastPage = 256;
constexpr uint64_t kMostPage = uint64_t{64} << 10;

// What the first bytes are where they are no meta page of ours.
Status no_meta(Bytes head) {
  const auto magic_at = [&head](size_t at) { return load_le<uint32_t>(head.subspan(at)); };
  if (magic_at(12) == kLmdbMagic)
    return unsupported("an LMDB file of a 32-bit machine: copy it with mdb_dump and mdb_load");
  if (magic_at(16) == 0xdec0efbe)
    return unsupported("an LMDB file of a big-endian machine: copy it with mdb_dump and mdb_load");
  return corrupt(
      fmt::format("no LMDB file: {:08x} where the magic beefc0de belongs", magic_at(16)));
}

// How LMDB compares keys of such a tree.
bool comes_before(Bytes a, Bytes b, uint16_t flags) {
  if ((flags & kLmdbReverseKey) != 0)
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  if ((flags & kLmdbIntegerKey) != 0 && a.size() == b.size() && (a.size() == 4 || a.size() == 8))
    return a.size() == 4 ? load_le<uint32_t>(a) < load_le<uint32_t>(b)
                         : load_le<uint64_t>(a) < load_le<uint64_t>(b);
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

// The nodes of a leaf or branch page; bounds are checked.
Result<uint64_t> count_nodes(Bytes page) {
  const auto head = load_le<LmdbPageHead>(page);
  if (head.lower < kLmdbPageHead || head.lower % 2 != 0 || head.lower > head.upper ||
      head.upper > page.size())
    return corrupt(fmt::format("the page's bounds cannot be: {} and {} of {} bytes", head.lower,
                               head.upper, page.size()));
  return (head.lower - kLmdbPageHead) / 2;
}

struct Node {
  LmdbNodeHead head;
  Bytes key;
  Bytes rest;  // of the page, behind the key
};

Result<Node> node_at(Bytes page, uint64_t i) {
  const uint64_t at = load_le<uint16_t>(page.subspan(kLmdbPageHead + 2 * i));
  if (at < load_le<LmdbPageHead>(page).upper || at % 2 != 0 || at > page.size() - kLmdbNodeHead)
    return corrupt(fmt::format("entry {} of the page cannot lie at byte {}", i, at));
  Node node{.head = load_le<LmdbNodeHead>(page.subspan(at)), .key = {}, .rest = {}};
  const Bytes behind = page.subspan(at + kLmdbNodeHead);
  if (node.head.key_bytes > behind.size())
    return corrupt(fmt::format("the key of entry {} runs past its page", i));
  node.key = behind.first(node.head.key_bytes);
  node.rest = behind.subspan(node.head.key_bytes);
  return node;
}

}  // namespace

// What a walk has seen so far: more than the tree says it has is a loop or damage.
struct LmdbFile::Walk {
  const LmdbTree& tree;
  const Visit& visit;
  uint64_t branch_pages = 0;
  uint64_t leaf_pages = 0;
  uint64_t entries = 0;
  std::vector<std::byte> last_key = {};
};

Status LmdbFile::open() {
  HEADRACE_TRY(read_meta(0, meta_));
  page_bytes_ = meta_.free.pad;
  if (page_bytes_ < kLeastPage || page_bytes_ > kMostPage || (page_bytes_ & (page_bytes_ - 1)) != 0)
    return corrupt(fmt::format("a page cannot have {} bytes", page_bytes_)).at(0);
  LmdbMeta second;
  HEADRACE_TRY(read_meta(1, second));
  if (second.free.pad != page_bytes_)
    return corrupt(fmt::format("the two meta pages do not agree: pages of {} and {} bytes",
                               page_bytes_, second.free.pad))
        .at(page_bytes_);
  if (second.transaction > meta_.transaction) meta_ = second;
  return {};
}

Status LmdbFile::read_meta(uint64_t number, LmdbMeta& out) {
  const uint64_t at = number * page_bytes_;
  constexpr uint64_t kWanted = kLmdbPageHead + kLmdbMetaBytes;
  if (shard_.info.bytes < kWanted || at > shard_.info.bytes - kWanted)
    return corrupt(fmt::format("no LMDB file: {} bytes do not hold its two meta pages",
                               shard_.info.bytes))
        .at(at);
  Bytes page;
  HEADRACE_TRY(window_.bytes(at, kWanted, page));
  const auto head = load_le<LmdbPageHead>(page);
  out = load_le<LmdbMeta>(page.subspan(kLmdbPageHead));
  if (out.magic != kLmdbMagic)
    return (number == 0 ? no_meta(page) : corrupt("the second meta page has no magic")).at(at);
  if (out.version != kLmdbVersion)
    return unsupported(fmt::format("LMDB data version {}; this build reads version {}: copy it "
                                   "with that LMDB's mdb_dump and an older mdb_load",
                                   out.version, kLmdbVersion))
        .at(at);
  if ((head.flags & kLmdbPageKinds) != kLmdbMeta || head.number != number)
    return corrupt(fmt::format("page {} is no meta page", number)).at(at);
  return {};
}

Status LmdbFile::check_page(uint64_t number, uint64_t count) const {
  if (number < kLmdbMetaPages || number > meta_.last_page || count > meta_.last_page - number + 1)
    return corrupt(fmt::format("there is no page {}{}: the last one is {}", number,
                               count == 1 ? "" : fmt::format(" with {} behind it", count - 1),
                               meta_.last_page));
  if (number >= pages_in_file() || count > pages_in_file() - number)
    return corrupt(
        fmt::format("the file is cut short: it has {} whole pages of {} bytes, and "
                    "page {} is wanted",
                    pages_in_file(), page_bytes_, number + count - 1));
  return {};
}

Status LmdbFile::check_tree(const LmdbTree& tree) const {
  // Without a depth no page would be a leaf: branches that name themselves would never end.
  if (tree.depth > kLmdbMaxDepth || (tree.depth == 0 && tree.entries > 0))
    return corrupt(fmt::format("a tree of depth {}", tree.depth));
  if ((tree.flags & kLmdbDupSort) != 0)
    return unsupported(
        "the database has several values for a key (dupsort), which are no samples: copy it into "
        "one without");
  if (tree.leaf_pages > pages_in_file() || tree.branch_pages > pages_in_file())
    return corrupt(fmt::format("the file is cut short: the tree has {} pages, the file {}",
                               std::max(tree.leaf_pages, tree.branch_pages), pages_in_file()));
  if ((tree.root == kLmdbNoPage) != (tree.entries == 0))
    return corrupt(fmt::format("a tree of {} entries {} a first page", tree.entries,
                               tree.root == kLmdbNoPage ? "without" : "with"));
  return {};
}

Status LmdbFile::walk(const LmdbTree& tree, const Visit& visit) {
  HEADRACE_TRY(check_tree(tree));
  if (tree.entries == 0) return {};
  Walk walk{.tree = tree, .visit = visit};
  HEADRACE_TRY(visit_page(walk, tree.root, 1));
  if (walk.entries != tree.entries)
    return corrupt(
        fmt::format("the database has {} entries and says {}", walk.entries, tree.entries));
  return {};
}

Status LmdbFile::visit_page(Walk& walk, uint64_t number, uint32_t level) {
  if (shard_.cancelled()) return cancelled("indexing was cancelled");
  HEADRACE_TRY(check_page(number, 1));
  const uint64_t at = number * page_bytes_;
  Bytes seen;
  HEADRACE_TRY(window_.bytes(at, page_bytes_, seen));
  // A copy: the window moves on to values and to other pages.
  const std::vector<std::byte> page(seen.begin(), seen.end());
  const auto head = load_le<LmdbPageHead>(page);
  const uint16_t wanted = level == walk.tree.depth ? kLmdbLeaf : kLmdbBranch;
  if (head.number != number || (head.flags & kLmdbPageKinds) != wanted)
    return corrupt(fmt::format("page {} is no {} page of the tree: it says it is page {}, of kind "
                               "{:#x}",
                               number, wanted == kLmdbLeaf ? "leaf" : "branch", head.number,
                               head.flags))
        .at(at);
  if (Status s = wanted == kLmdbLeaf ? visit_leaf(walk, page, number)
                                     : visit_branch(walk, page, number, level);
      !s.ok())
    return s.at(at);
  return {};
}

Status LmdbFile::visit_branch(Walk& walk, Bytes page, uint64_t number, uint32_t level) {
  if (walk.branch_pages++ == walk.tree.branch_pages)
    return corrupt(fmt::format("page {} is a branch too many: the tree has {}", number,
                               walk.tree.branch_pages));
  HEADRACE_ASSIGN(const uint64_t nodes, count_nodes(page));
  for (uint64_t i = 0; i < nodes; ++i) {
    HEADRACE_ASSIGN(const Node node, node_at(page, i));
    HEADRACE_TRY(visit_page(walk, node.head.page(), level + 1));
  }
  return {};
}

Status LmdbFile::visit_leaf(Walk& walk, Bytes page, uint64_t number) {
  if (walk.leaf_pages++ == walk.tree.leaf_pages)
    return corrupt(
        fmt::format("page {} is a leaf too many: the tree has {}", number, walk.tree.leaf_pages));
  HEADRACE_ASSIGN(const uint64_t nodes, count_nodes(page));
  for (uint64_t i = 0; i < nodes; ++i) {
    HEADRACE_ASSIGN(const Node node, node_at(page, i));
    if (walk.entries++ > 0 && !comes_before(walk.last_key, node.key, walk.tree.flags))
      return corrupt(fmt::format("the keys are not in order: entry {} of the page", i));
    walk.last_key.assign(node.key.begin(), node.key.end());
    LmdbEntry entry{.key = node.key,
                    .flags = node.head.flags,
                    .page_at = number * page_bytes_,
                    .value_bytes = node.head.value_bytes()};
    const bool is_big = (node.head.flags & kLmdbBigData) != 0;
    if (node.rest.size() < (is_big ? sizeof(uint64_t) : entry.value_bytes))
      return corrupt(fmt::format("the value of entry {} runs past its page", i));
    if (is_big) {
      const auto run = load_le<uint64_t>(node.rest);
      HEADRACE_TRY(check_page(run, lmdb_run_pages(entry.value_bytes, page_bytes_)));
      entry.value_at = run * page_bytes_;
    } else {
      entry.value = node.rest.first(entry.value_bytes);
      entry.value_at = entry.page_at + static_cast<uint64_t>(entry.value.data() - page.data());
    }
    HEADRACE_TRY(walk.visit(entry));
  }
  return {};
}

Status LmdbFile::check_run(LmdbEntry& entry) {
  if ((entry.flags & kLmdbBigData) == 0) return {};
  Bytes bytes;
  HEADRACE_TRY(window_.bytes(entry.value_at, kLmdbPageHead, bytes));
  const auto head = load_le<LmdbPageHead>(bytes);
  if (head.number != entry.value_at / page_bytes_ ||
      (head.flags & kLmdbPageKinds) != kLmdbOverflow ||
      head.pages() < lmdb_run_pages(entry.value_bytes, page_bytes_))
    return corrupt(fmt::format("page {} does not hold the {} bytes of a value",
                               entry.value_at / page_bytes_, entry.value_bytes))
        .at(entry.value_at);
  entry.value_at += kLmdbPageHead;
  return {};
}

}  // namespace headrace
