// SPDX-License-Identifier: Apache-2.0
//
// LitData's chunks, beside the index.json that says what is in them (litdata_index.h).
//
//   | u32 n | u32 offset of each item, and the end | item | item | …     an item: columns.h, no
//                                                                        leaf has a fixed size
// zstd by "chunk": all of that in one frame.  By "sample": each item is a frame.  By "batch":
//
//   | "LDFZ01" 0 0 | u16 version 1 | u16 0 | u32 n | u32 items a frame | u32 frames |
//   | u32 offset of each unpacked item, from 0, and the end |
//   | u32 first item | u32 items | u64 offset | u32 packed bytes | u32 unpacked bytes |  a frame
//   | frames |
//
// Little-endian.  TokensLoader: an item is its tokens and nothing else.
//
//   int, float, bool             a number in the index
//   str, bytes, jpeg, image, …   where they lie
//   no_header_tensor, _numpy     an array of one axis, where it lies
//   tensor, numpy, pil           .npy bytes, made when the value is read
//   jpeg_array                   as many values as the list has
//
// A zstd frame is a unit.  Leaves of it that become .npy are another: the frame opened as the
// RowTable of one leaf, which the number of the encoding names.

#include <fmt/format.h>

#include "base/zstd.h"
#include "format/folder_index.h"
#include "format/header_window.h"
#include "format/litdata/items.h"
#include "format/records.h"
#include "index/sidecar.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".zstd.bin"};  // .bin alone may be anything
constexpr std::string_view kNameSuffixes[] = {".zstd.bin", ".bin"};
constexpr std::string_view kBatchMagic("LDFZ01\0\0", 8);
constexpr std::string_view kArrowMagic("LDARW01\0", 8);
constexpr uint64_t kBatchHead = 24;
constexpr uint64_t kFrameRow = 24;

// Walks one chunk.  One thread at a time.
class LitIndexer {
 public:
  explicit LitIndexer(const ShardInput& shard)
      : input_(shard),
        window_(shard),
        keys_(shard.info.path, kNameSuffixes),
        items_(shard, keys_) {}

  Result<PartPointer> run() {
    Status status = walk();
    if (!status.ok())
      return after_last_good(status, input_.info.path, items_.count(),
                             items_.count() == 0 ? "" : keys_.at(items_.count() - 1));
    return items_.finish();
  }

 private:
  uint64_t size() const { return input_.info.bytes; }

  Status walk() {
    HEADRACE_ASSIGN(const LitBeside beside, lit_index_beside(input_.store, input_.info.path));
    index_ = beside.index;
    const auto named = index_->named.find(std::string(base_name(input_.info.path)));
    if (named == index_->named.end())
      return invalid(fmt::format("{} beside it does not name this chunk", kFolderIndex));
    chunk_ = &index_->chunks[named->second];
    items_.begin(*index_, stamp_of_beside(std::string(kFolderIndex), beside.file));
    switch (index_->packing) {
      case LitPacking::kNone:
        return walk_plain();
      case LitPacking::kChunk:
        return walk_packed_chunk();
      case LitPacking::kBatch:
        return walk_batches();
      case LitPacking::kItem:
        return walk_packed_items();
    }
    return internal("no such packing");
  }

  ReadBytes file_reader() {
    return [this](uint64_t offset, uint64_t length, Bytes& out) -> Status {
      if (offset > size() || length > size() - offset)
        return corrupt(fmt::format("the chunk has {} bytes and ends before what its head names",
                                   size()))
            .at(offset);
      return window_.bytes(offset, length, out);
    };
  }

  Status check_count(uint64_t items) const {
    if (items == chunk_->items) return {};
    return corrupt(fmt::format("{} says that the chunk has {} items, its own head says {}",
                               kFolderIndex, chunk_->items, items))
        .at(0);
  }

  // Old versions count the items without the offsets before them.
  Status check_bytes(uint64_t bytes) const {
    if (bytes == chunk_->bytes || bytes - 4 * (chunk_->items + 2) == chunk_->bytes) return {};
    return corrupt(fmt::format("{} says that the chunk has {} bytes, and it has {}", kFolderIndex,
                               chunk_->bytes, bytes));
  }

  // The items of a chunk in its plain form, `bytes` long.
  Status take_offsets(const ReadBytes& read, uint64_t bytes, std::vector<Extent>& out) const {
    Bytes head;
    if (bytes < 8) return corrupt(fmt::format("{} bytes are no chunk of LitData", bytes)).at(0);
    HEADRACE_TRY(read(0, 4, head));
    const uint64_t items = load_le<uint32_t>(head);
    HEADRACE_TRY(check_count(items));
    if (4 * (items + 2) > bytes)
      return corrupt(fmt::format("the offsets of {} items do not fit into {} bytes", items, bytes))
          .at(0);
    uint64_t end = bytes;
    HEADRACE_TRY(read(bytes - kArrowMagic.size(), kArrowMagic.size(), head));
    const bool has_arrow = as_text(head) == kArrowMagic;
    HEADRACE_TRY(read(4, 4 * (items + 1), head));
    // The same items once more, as Arrow, behind them; or there only.
    if (has_arrow) end = load_le<uint32_t>(head.subspan(4 * items));
    if (has_arrow && end == 4 * (items + 2))
      return unsupported(
          "the items are there as Arrow rows only, which are not read: write them with a "
          "serializer that is no text, or without pyarrow");
    return cut(head, 4 * (items + 2), std::min(end, bytes), out);
  }

  // `offsets` rise from exactly `first` to exactly `end`.
  static Status cut(Bytes offsets, uint64_t first, uint64_t end, std::vector<Extent>& out) {
    const uint64_t items = offsets.size() / 4 - 1;
    uint64_t last = load_le<uint32_t>(offsets);
    if (last != first)
      return corrupt(fmt::format("the first item begins at {}, not at {}", last, first)).at(4);
    for (uint64_t i = 1; i <= items; ++i) {
      const uint64_t next = load_le<uint32_t>(offsets.subspan(4 * i));
      if (next < last || next > end)
        return corrupt(fmt::format("item {} ends at {}, which is not between {} and {}", i - 1,
                                   next, last, end))
            .at(4 + 4 * i);
      out.push_back({last, next - last});
      last = next;
    }
    if (last != end)
      return corrupt(fmt::format("the items end at {}, the chunk at {}", last, end)).at(4 * items);
    return {};
  }

  Status walk_plain() {
    const ReadBytes read = file_reader();
    std::vector<Extent> items;
    HEADRACE_TRY(take_offsets(read, size(), items));
    HEADRACE_TRY(check_bytes(size()));
    for (const Extent& item : items)
      if (Status s = items_.add(item, read); !s.ok()) return s.at(item.begin);
    return {};
  }

  Status walk_packed_chunk() {
    HEADRACE_ASSIGN(const Buffer stored, input_.store.read_all(input_.info.path));
    Frame frame{.stored = size(), .has_offsets = true};
    const uint64_t with_offsets = chunk_->bytes + 4 * (chunk_->items + 2);
    frame.decoded = zstd_stated_bytes(stored.bytes()).value_or(chunk_->bytes);
    if (frame.decoded != chunk_->bytes && frame.decoded != with_offsets)
      return check_bytes(frame.decoded);
    Buffer raw;
    HEADRACE_TRY(zstd_open(stored.bytes(), frame.decoded, raw));
    HEADRACE_TRY(take_offsets(reads_from(raw.bytes()), raw.size(), frame.items));
    return items_.add_frame(frame, raw.bytes());
  }

  Status walk_packed_items() {
    std::vector<Extent> items;
    HEADRACE_TRY(take_offsets(file_reader(), size(), items));
    HEADRACE_TRY(check_bytes(size()));
    Buffer raw;
    for (const Extent& item : items) {
      Bytes stored;
      HEADRACE_TRY(window_.bytes(item.begin, item.length, stored));
      const std::optional<uint64_t> stated = zstd_stated_bytes(stored);
      if (!stated)
        return corrupt("an item that is no zstd frame which says its size").at(item.begin);
      if (Status s = zstd_open(stored, *stated, raw); !s.ok()) return s.at(item.begin);
      const Frame frame{.offset = item.begin,
                        .stored = item.length,
                        .decoded = raw.size(),
                        .items = {{0, raw.size()}}};
      HEADRACE_TRY(items_.add_frame(frame, raw.bytes()));
    }
    return {};
  }

  Status walk_batches() {
    const ReadBytes read = file_reader();
    Bytes head;
    HEADRACE_TRY(read(0, kBatchHead, head));
    if (!as_text(head).starts_with(kBatchMagic))
      return corrupt("no chunk of LitData in zstd batches: it does not begin with LDFZ01").at(0);
    if (load_le<uint16_t>(head.subspan(8)) != 1)
      return unsupported(fmt::format("version {} of LitData's batches; 1 is read",
                                     load_le<uint16_t>(head.subspan(8))));
    const uint64_t items = load_le<uint32_t>(head.subspan(12));
    const uint64_t frames = load_le<uint32_t>(head.subspan(20));
    HEADRACE_TRY(check_count(items));
    const uint64_t table = kBatchHead + 4 * (items + 1);
    if (items == 0 || frames > items) return corrupt("a chunk of batches without items").at(12);
    HEADRACE_TRY(read(kBatchHead, 4 * (items + 1) + frames * kFrameRow, head));
    const std::vector<std::byte> kept(head.begin(), head.end());
    const uint64_t end = load_le<uint32_t>(Bytes(kept).subspan(4 * items));
    HEADRACE_TRY(check_bytes(size()));
    std::vector<Extent> all;
    HEADRACE_TRY(cut(Bytes(kept).first(4 * (items + 1)), 0, end, all));
    uint64_t next = 0;
    for (uint64_t f = 0; f < frames; ++f)
      if (Status s = add_batch(Bytes(kept).subspan(4 * (items + 1) + f * kFrameRow), all, next);
          !s.ok())
        return s.at(table + f * kFrameRow);
    if (next != items)
      return corrupt(fmt::format("the frames hold {} items of {}", next, items)).at(table);
    return {};
  }

  Status add_batch(Bytes row, const std::vector<Extent>& all, uint64_t& next) {
    const uint64_t first = load_le<uint32_t>(row);
    const uint64_t count = load_le<uint32_t>(row.subspan(4));
    Frame frame{.offset = load_le<uint64_t>(row.subspan(8)),
                .stored = load_le<uint32_t>(row.subspan(16)),
                .decoded = load_le<uint32_t>(row.subspan(20))};
    if (first != next || count == 0 || count > all.size() - first)
      return corrupt(fmt::format("a frame of items {} to {}, where {} is the next", first,
                                 first + count, next));
    const uint64_t begin = all[first].begin;
    const Extent& last = all[first + count - 1];
    if (last.begin + last.length - begin != frame.decoded)
      return corrupt(fmt::format("a frame of {} bytes whose items have {}", frame.decoded,
                                 last.begin + last.length - begin));
    for (uint64_t i = first; i < first + count; ++i)
      frame.items.push_back({all[i].begin - begin, all[i].length});
    next += count;
    Bytes stored;
    HEADRACE_TRY(file_reader()(frame.offset, frame.stored, stored));
    Buffer raw;
    if (Status s = zstd_open(stored, frame.decoded, raw); !s.ok()) return s.at(frame.offset);
    return items_.add_frame(frame, raw.bytes());
  }

  const ShardInput& input_;
  HeaderWindow window_;
  NumberedKeys keys_;
  LitItems items_;
  std::shared_ptr<const LitIndex> index_;
  const LitChunk* chunk_ = nullptr;
};

Result<PartPointer> index(const ShardInput& shard) {
  return LitIndexer(shard).run();
}

bool sniff(Bytes head) {
  if (as_text(head).starts_with(kBatchMagic)) return true;
  if (head.size() < 12) return false;
  const uint64_t items = load_le<uint32_t>(head);
  const uint64_t last = load_le<uint32_t>(head.subspan(4));
  if (items == 0 || last != 4 * (items + 2)) return false;
  for (uint64_t at = 8; at < std::min<uint64_t>(last, head.size() - 3); at += 4) {
    const uint64_t next = load_le<uint32_t>(head.subspan(at));
    if (next < load_le<uint32_t>(head.subspan(at - 4))) return false;
  }
  return true;
}

}  // namespace

extern constinit const Format litdata_format{
    .name = "litdata",
    .doc =
        "LitData's chunks with their index.json, raw or in zstd: each leaf of an item is a field",
    .suffixes = kSuffixes,
    .guards_lengths = false,
    .sniff = sniff,
    .claim = claim_lit_folder,
    .index = index,
    .decode_unit = open_lit_unit,
};

}  // namespace headrace
