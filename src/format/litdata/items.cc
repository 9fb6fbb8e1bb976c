// SPDX-License-Identifier: Apache-2.0
#include "format/litdata/items.h"

#include <fmt/format.h>

#include "base/zstd.h"
#include "format/records.h"
#include "index/row_table.h"
#include "index/source.h"

namespace headrace {
namespace {

constexpr uint32_t kZstd = kAfterArrays;

// The encoding of one leaf of a frame: bits 0 to 11 how many leaves an item has, 12 to 23 which
// one, 24 to 26 how it converts; bit 27: the frame begins with the offsets of the chunk.
constexpr uint32_t kLeafTable = uint32_t{1} << 31;
constexpr uint32_t kHasOffsets = uint32_t{1} << 27;

uint32_t leaf_opening(size_t leaves, size_t leaf, uint32_t converts, bool has_offsets) {
  return kLeafTable | (has_offsets ? kHasOffsets : 0) | converts << 24 |
         static_cast<uint32_t>(leaf) << 12 | static_cast<uint32_t>(leaves);
}

// One leaf of all items of an unpacked frame, as .npy: items follow one another.
Status open_leaf_table(uint32_t encoding, Bytes raw, Buffer& out) {
  const uint64_t leaves = encoding & 0xfff;
  const uint64_t leaf = encoding >> 12 & 0xfff;
  uint64_t at = 0;
  if ((encoding & kHasOffsets) != 0)
    at = raw.size() < 4 ? raw.size() : 4 * (uint64_t{load_le<uint32_t>(raw)} + 2);
  if (leaf >= leaves || at > raw.size()) return not_as_indexed("chunk");
  RowTableBuilder table;
  std::vector<std::byte> npy;
  while (at < raw.size()) {
    const uint64_t room = raw.size() - at;
    if (4 * leaves > room) return corrupt("an item ends within the sizes of its leaves").at(at);
    uint64_t place = 4 * leaves;
    Bytes value;
    for (uint64_t l = 0; l < leaves; ++l) {
      const uint64_t length = load_le<uint32_t>(raw.subspan(at + 4 * l));
      if (length > room - place) return corrupt("a leaf runs past the end of its chunk").at(at);
      if (l == leaf) value = raw.subspan(at + place, length);
      place += length;
    }
    ArrayHead head;
    HEADRACE_TRY(parse_array(encoding >> 24 & 7,
                             value.first(std::min<uint64_t>(value.size(), kMostArrayHead)), head));
    HEADRACE_TRY(check_array(head, value.size()));
    npy.resize(npy_bytes(head, value.size()));
    make_npy(head, value, npy);
    table.add_value(npy);
    table.end_row();
    at += place;
  }
  table.finish(out);
  return {};
}

Status check_elements(const StoredColumn& column, uint64_t bytes) {
  const Field& field = column.field;
  const bool typed = field.kind == Kind::kArray || field.kind == Kind::kTokens;
  if (!typed || bytes % size_of(*field.dtype) == 0) return {};
  return corrupt(fmt::format("leaf '{}' has {} bytes, which is no number of {}", field.name, bytes,
                             dtype_name(*field.dtype)));
}

PartValue place(const StoredColumn& column, const ColumnValue& value, const Frame* frame) {
  const auto [begin, length] = value.place;
  if (frame != nullptr)
    return {.offset = frame->offset,
            .stored = frame->stored,
            .decoded = frame->decoded,
            .begin = begin,
            .length = length,
            .encoding = kZstd};
  if (!value.converts) return {.offset = begin, .stored = length};
  return {.offset = begin,
          .stored = length,
          .decoded = npy_bytes(value.array, length),
          .encoding = column.encoding};
}

}  // namespace

LitItems::LitItems(const ShardInput& shard, NumberedKeys& keys)
    : input_(shard),
      keys_(keys),
      part_(PartHead{.format = "litdata",
                     .shard_bytes = shard.info.bytes,
                     .modified_ns = shard.info.modified_ns,
                     .has_openings = true}) {}

void LitItems::begin(const LitIndex& index, FolderStamp stamp) {
  index_ = &index;
  part_.head().folders.push_back(std::move(stamp));
  for (const StoredColumn& column : index.columns) fields_.push_back(part_.field(column.field));
}

Status LitItems::add_frame(const Frame& frame, Bytes raw) {
  tables_.assign(index_->columns.size(), {});
  for (size_t c = 0; c < index_->columns.size(); ++c) {
    const StoredColumn& column = index_->columns[c];
    if (column.reading != Reading::kConvert) continue;
    tables_[c].encoding =
        leaf_opening(index_->columns.size(), c, column.encoding, frame.has_offsets);
    Buffer table;
    if (Status s = open_leaf_table(tables_[c].encoding, raw, table); !s.ok())
      return s.with(fmt::format("leaf '{}'", column.field.name));
    tables_[c].bytes = table.size();
  }
  const ReadBytes read = reads_from(raw);
  for (size_t i = 0; i < frame.items.size(); ++i)
    if (Status s = add(frame.items[i], read, &frame, i); !s.ok()) return s.at(frame.offset);
  return {};
}

Status LitItems::add(const Extent& item, const ReadBytes& read, const Frame* frame, uint64_t row) {
  if (input_.cancelled()) return cancelled("indexing was cancelled");
  if (index_->is_tokens)
    places_.assign(1, item);
  else
    HEADRACE_TRY(locate_columns(index_->columns, item, read, places_));
  for (size_t c = 0; c < places_.size(); ++c) {
    const StoredColumn& column = index_->columns[c];
    if (column.reading == Reading::kNumber) {
      HEADRACE_TRY(add_number(column, fields_[c], places_[c], read));
      continue;
    }
    if (frame != nullptr && column.reading == Reading::kConvert) {
      part_.add_extent(fields_[c], {.offset = frame->offset,
                                    .stored = frame->stored,
                                    .decoded = tables_[c].bytes,
                                    .begin = row,
                                    .length = kRow,
                                    .encoding = tables_[c].encoding});
      continue;
    }
    HEADRACE_TRY(check_elements(column, places_[c].length));
    HEADRACE_TRY(column_values(column, places_[c], read, values_));
    for (const ColumnValue& value : values_)
      part_.add_extent(fields_[c], place(column, value, frame));
  }
  part_.end_sample(keys_.at(part_.samples()));
  return {};
}

Status LitItems::add_number(const StoredColumn& column, uint32_t field, Extent at,
                            const ReadBytes& read) {
  Bytes bytes;
  HEADRACE_TRY(read(at.begin, at.length, bytes));
  Number number;
  if (Status s = load_number(column.dtype, bytes, number); !s.ok())
    return s.with(fmt::format("leaf '{}'", column.field.name));
  if (number.is_float)
    part_.add_float(field, number.real);
  else
    part_.add_int(field, number.whole);
  return {};
}

Status open_lit_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                     Buffer& decoded) {
  if (unit.encoding == kZstd) return zstd_open(stored, unit.decoded_bytes, decoded);
  if (unit.encoding < kLeafTable)
    return open_array(unit.encoding, stored, unit.decoded_bytes, decoded);
  const std::optional<uint64_t> stated = zstd_stated_bytes(stored);
  if (!stated) return unsupported("a zstd frame that does not say how large it is");
  Buffer raw;
  HEADRACE_TRY(zstd_open(stored, *stated, raw));
  HEADRACE_TRY(open_leaf_table(unit.encoding, raw.bytes(), decoded));
  if (decoded.size() != unit.decoded_bytes) return not_as_indexed("chunk").at(0);
  return {};
}

}  // namespace headrace
