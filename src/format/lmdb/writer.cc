// SPDX-License-Identifier: Apache-2.0
//
// Samples as an LMDB file, entries `key.field`.  They come in the order of their keys, so that the
// tree grows from the left: leaves are written as they fill, long values before the leaf that names
// them, the branches above in the end and the root last.  Both meta pages are filled in then.
//
//   | meta 0: no entry | meta 1: the tree | value | value | leaf | value | … | leaf | branch | root
//   |

#include "format/lmdb/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/lmdb/page.h"
#include "format/members.h"

namespace headrace {
namespace {

constexpr uint64_t kPage = 4096;
// Two entries fit into a leaf at least; what is longer lies in pages of its own, as LMDB does it.
constexpr uint64_t kMaxNode = ((kPage - kLmdbPageHead) / 2 & ~uint64_t{1}) - 2;
constexpr uint64_t kMaxValue = (uint64_t{1} << 32) - 1;
constexpr uint16_t kIntegerKeys = 0x08;  // what LMDB says of its tree of free pages

// A page of nodes that is being filled.
class NodePage {
 public:
  bool is_empty() const { return lower_ == kLmdbPageHead; }
  uint64_t nodes() const { return (lower_ - kLmdbPageHead) / 2; }
  bool has_room(uint64_t key, uint64_t value) const {
    return upper_ - lower_ >= node_bytes(key, value) + 2;
  }
  // Precondition: has_room().
  void add(const LmdbNodeHead& head, Bytes key, Bytes value) {
    upper_ -= node_bytes(key.size(), value.size());
    const MutableBytes node = MutableBytes(page_).subspan(upper_);
    store_le(node, head);
    std::copy(key.begin(), key.end(), node.begin() + kLmdbNodeHead);
    std::copy(value.begin(), value.end(),
              node.begin() + static_cast<std::ptrdiff_t>(kLmdbNodeHead + key.size()));
    store_le(MutableBytes(page_).subspan(lower_), static_cast<uint16_t>(upper_));
    lower_ += 2;
  }
  Bytes finish(uint64_t number, uint16_t flags) {
    store_le(MutableBytes(page_), LmdbPageHead{.number = number,
                                               .flags = flags,
                                               .lower = static_cast<uint16_t>(lower_),
                                               .upper = static_cast<uint16_t>(upper_)});
    return page_;
  }
  void clear() {
    page_.fill(std::byte{0});
    lower_ = kLmdbPageHead;
    upper_ = kPage;
  }
  static uint64_t node_bytes(uint64_t key, uint64_t value) {
    return (kLmdbNodeHead + key + value + 1) & ~uint64_t{1};
  }

 private:
  std::array<std::byte, kPage> page_{};
  uint64_t lower_ = kLmdbPageHead;
  uint64_t upper_ = kPage;
};

// A page of the level below, by its first key.
struct Child {
  std::string key;
  uint64_t page;
};

class LmdbWriter final : public Writer {
 public:
  explicit LmdbWriter(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  Status append(const Record& record) override {
    HEADRACE_TRY(names_.take(record));
    // Fields in the order of their names, which is that of the entries.
    order_.resize(record.values.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(),
              [this](size_t a, size_t b) { return names_.names()[a] < names_.names()[b]; });
    for (const size_t i : order_)
      if (Status s = put(names_.names()[i], record.values[i]); !s.ok())
        return s.of_sample(samples_, record.key);
    ++samples_;
    return {};
  }

  Status finish() override {
    HEADRACE_TRY(begin());
    if (!leaf_.is_empty()) HEADRACE_TRY(end_leaf());
    std::vector<Child> level = std::move(leaves_);
    tree_.depth = level.empty() ? 0 : 1;
    while (level.size() > 1) {
      HEADRACE_TRY(end_level(level));
      ++tree_.depth;
    }
    if (!level.empty()) tree_.root = level.front().page;
    HEADRACE_TRY(rewrite_meta(0, LmdbTree{}, 1));
    HEADRACE_TRY(rewrite_meta(1, tree_, next_page_ - 1));
    return sink_->close();
  }

 private:
  // Room for the meta pages.
  Status begin() {
    if (next_page_ > 0) return {};
    next_page_ = kLmdbMetaPages;
    const std::array<std::byte, kLmdbMetaPages * kPage> zeros{};
    return sink_->append(zeros);
  }

  Status put(const std::string& name, const RecordValue& value) {
    if (value.storage == Storage::kExtent) return entry(name, value.bytes);
    return entry(name, as_bytes(inline_as_text(value.kind, value.bytes)));
  }

  Status entry(const std::string& name, Bytes value) {
    HEADRACE_TRY(check(name, value));
    HEADRACE_TRY(begin());
    last_name_ = name;
    const bool is_big = kLmdbNodeHead + name.size() + value.size() > kMaxNode;
    std::array<std::byte, sizeof(uint64_t)> run;
    if (is_big) {
      store_le(MutableBytes(run), next_page_);
      HEADRACE_TRY(put_run(value));
    }
    const Bytes stored = is_big ? Bytes(run) : value;
    if (!leaf_.has_room(name.size(), stored.size())) HEADRACE_TRY(end_leaf());
    if (leaf_.is_empty()) leaves_.push_back({name, 0});
    leaf_.add({.low = static_cast<uint16_t>(value.size()),
               .high = static_cast<uint16_t>(value.size() >> 16),
               .flags = is_big ? uint16_t{kLmdbBigData} : uint16_t{0},
               .key_bytes = static_cast<uint16_t>(name.size())},
              as_bytes(name), stored);
    ++tree_.entries;
    return {};
  }

  Status check(const std::string& name, Bytes value) const {
    if (name.size() > kLmdbMaxKey)
      return unsupported(
          fmt::format("LMDB's keys have at most {} bytes, and '{}' has {}: shorten "
                      "the sample's key",
                      kLmdbMaxKey, name, name.size()));
    if (value.size() > kMaxValue)
      return unsupported(
          fmt::format("'{}' has {} bytes; LMDB's values have less than 4 GiB", name, value.size()));
    if (name == last_name_)
      return unsupported(fmt::format("two samples of one LMDB file have the entry '{}'", name));
    // Of bytes, as LMDB compares them, and as std::string does.
    if (name < last_name_)
      return unsupported(
          fmt::format("entries of an LMDB file lie in the order of their keys: '{}' "
                      "cannot come after '{}'",
                      name, last_name_));
    return {};
  }

  Status put_run(Bytes value) {
    const uint64_t pages = lmdb_run_pages(value.size(), kPage);
    std::array<std::byte, kLmdbPageHead> head;
    store_le(MutableBytes(head), LmdbPageHead{.number = next_page_,
                                              .flags = kLmdbOverflow,
                                              .lower = static_cast<uint16_t>(pages),
                                              .upper = static_cast<uint16_t>(pages >> 16)});
    static constexpr std::array<std::byte, kPage> kZeros{};
    HEADRACE_TRY(sink_->append(head));
    HEADRACE_TRY(sink_->append(value));
    HEADRACE_TRY(sink_->append(Bytes(kZeros).first(pages * kPage - head.size() - value.size())));
    next_page_ += pages;
    tree_.overflow_pages += pages;
    return {};
  }

  Status end_leaf() {
    leaves_.back().page = next_page_;
    ++tree_.leaf_pages;
    return put_page(leaf_, kLmdbLeaf);
  }

  Status put_page(NodePage& page, uint16_t flags) {
    HEADRACE_TRY(sink_->append(page.finish(next_page_, flags)));
    page.clear();
    ++next_page_;
    return {};
  }

  // The pages above `level`, which become it.  None has a single child: LMDB wants two.
  Status end_level(std::vector<Child>& level) {
    std::vector<Child> above;
    for (size_t begin = 0; begin < level.size();) {
      size_t end = children_that_fit(level, begin);
      if (level.size() - end == 1) --end;
      NodePage page;
      for (size_t i = begin; i < end; ++i)
        page.add(branch_head(level[i], i == begin), branch_key(level[i], i == begin), {});
      above.push_back({level[begin].key, next_page_});
      ++tree_.branch_pages;
      HEADRACE_TRY(put_page(page, kLmdbBranch));
      begin = end;
    }
    level = std::move(above);
    return {};
  }

  static size_t children_that_fit(const std::vector<Child>& level, size_t begin) {
    uint64_t used = kLmdbPageHead;
    size_t end = begin;
    for (; end < level.size(); ++end) {
      used += NodePage::node_bytes(branch_key(level[end], end == begin).size(), 0) + 2;
      if (used > kPage) break;
    }
    return end;
  }

  // The first key of a branch stands for all that are less, and is empty.
  static Bytes branch_key(const Child& child, bool is_first) {
    return is_first ? Bytes() : as_bytes(child.key);
  }
  static LmdbNodeHead branch_head(const Child& child, bool is_first) {
    return {.low = static_cast<uint16_t>(child.page),
            .high = static_cast<uint16_t>(child.page >> 16),
            .flags = static_cast<uint16_t>(child.page >> 32),
            .key_bytes = static_cast<uint16_t>(branch_key(child, is_first).size())};
  }

  Status rewrite_meta(uint64_t number, const LmdbTree& tree, uint64_t last_page) {
    std::array<std::byte, kLmdbPageHead + kLmdbMetaBytes> page;
    store_le(MutableBytes(page), LmdbPageHead{.number = number, .flags = kLmdbMeta});
    LmdbMeta meta{.map_bytes = next_page_ * kPage,
                  .main = tree,
                  .last_page = last_page,
                  .transaction = number};
    meta.free.pad = kPage;
    meta.free.flags = kIntegerKeys;
    store_le(MutableBytes(page).subspan(kLmdbPageHead), meta);
    return sink_->rewrite(number * kPage, page);
  }

  std::unique_ptr<Sink> sink_;
  MemberNames names_{"LMDB file"};
  std::vector<size_t> order_;  // of the record at hand
  std::string last_name_;
  uint64_t samples_ = 0;
  uint64_t next_page_ = 0;  // 0: nothing is written yet
  NodePage leaf_;
  std::vector<Child> leaves_;  // one for each leaf page: some 40 bytes for 4 KiB
  LmdbTree tree_;
};

}  // namespace

Result<std::unique_ptr<Writer>> make_lmdb_writer(ShardOutput out) {
  return std::unique_ptr<Writer>(std::make_unique<LmdbWriter>(std::move(out.file)));
}

}  // namespace headrace
