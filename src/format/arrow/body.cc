// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/body.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/arrow/compression.h"

namespace headrace {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 40;  // items of an array: no product overflows
constexpr uint64_t kPrefix = 8;                   // the decoded length before a compressed buffer

bool is_view(ArrowType type) {
  return type == ArrowType::kBinaryView || type == ArrowType::kUtf8View;
}

// As the format's description lists them; views have more.
uint32_t buffers_of(const ArrowField& field, bool unions_have_nulls) {
  if (field.dictionary) return 2;
  switch (field.type) {
    case ArrowType::kNull:
    case ArrowType::kRunEndEncoded:
      return 0;
    case ArrowType::kStruct:
    case ArrowType::kFixedSizeList:
      return 1;
    case ArrowType::kBinary:
    case ArrowType::kUtf8:
    case ArrowType::kLargeBinary:
    case ArrowType::kLargeUtf8:
    case ArrowType::kListView:
    case ArrowType::kLargeListView:
      return 3;
    case ArrowType::kUnion:
      return (field.is_dense ? 2u : 1u) + (unions_have_nulls ? 1u : 0u);
    default:
      return 2;
  }
}

}  // namespace

PartValue ArrowExtent::piece(uint64_t begin, uint64_t length) const {
  // An empty value opens nothing.
  if (length == 0) return {.offset = offset};
  if (encoding == 0) return {.offset = offset + begin, .stored = length};
  return {.offset = offset,
          .stored = stored,
          .decoded = decoded,
          .begin = begin,
          .length = length,
          .encoding = encoding};
}

Status ArrowBody::open(const ArrowSchema& schema, const ArrowBatch& batch, uint64_t begin,
                       uint64_t length) {
  begin_ = begin;
  compression_ = batch.compression;
  places_ = batch.buffers;
  for (const ArrowPlace& place : places_) {
    // Compared without adding: both are from the file.
    if (place.offset < 0 || place.length < 0 || static_cast<uint64_t>(place.offset) > length ||
        static_cast<uint64_t>(place.length) > length - static_cast<uint64_t>(place.offset))
      return corrupt(fmt::format("a buffer of {} bytes at {} lies outside of its batch of {} bytes",
                                 place.length, place.offset, length));
  }
  HEADRACE_TRY(place_arrays(schema, batch));
  return check_lengths(schema, batch);
}

// Nodes and buffers stand in the order of the fields.
Status ArrowBody::place_arrays(const ArrowSchema& schema, const ArrowBatch& batch) {
  arrays_.assign(schema.fields.size(), {});
  size_t nodes = 0;
  size_t views = 0;
  uint64_t buffers = 0;
  for (size_t i = 0; i < schema.fields.size();) {
    const ArrowField& field = schema.fields[i];
    if (nodes == batch.nodes.size()) return corrupt("a batch lacks columns of the schema");
    const ArrowNode& node = batch.nodes[nodes++];
    if (node.length < 0 || node.length > kMaxLength || node.nulls < 0 || node.nulls > node.length)
      return corrupt(fmt::format("column '{}' claims {} values, {} of them null", field.name,
                                 node.length, node.nulls));
    ArrowValues& array = arrays_[i];
    array = {static_cast<uint64_t>(node.length), static_cast<uint64_t>(node.nulls),
             static_cast<uint32_t>(buffers), 0};
    if (is_view(field.type) && !field.dictionary) {
      const int64_t more = views < batch.variadic.size() ? batch.variadic[views++] : -1;
      if (more < 0 || more > static_cast<int64_t>(places_.size()))
        return corrupt(fmt::format("column '{}' does not say how many buffers it has", field.name));
      array.variadic = static_cast<uint32_t>(more);
    }
    buffers += buffers_of(field, batch.unions_have_nulls) + array.variadic;
    if (buffers > places_.size()) return corrupt("a batch lacks buffers of the schema's columns");
    i = field.dictionary ? field.end : i + 1;
  }
  if (nodes != batch.nodes.size() || buffers != places_.size())
    return corrupt("a batch has more columns or buffers than the schema");
  return {};
}

Status ArrowBody::check_lengths(const ArrowSchema& schema, const ArrowBatch& batch) const {
  if (batch.rows < 0) return corrupt("a batch claims a negative number of rows");
  for (const uint32_t column : schema.columns)
    if (arrays_[column].length != static_cast<uint64_t>(batch.rows))
      return corrupt(fmt::format("column '{}' has {} values in a batch of {} rows",
                                 schema.fields[column].name, arrays_[column].length, batch.rows));
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const ArrowField& field = schema.fields[i];
    if (field.dictionary ||
        (field.type != ArrowType::kStruct && field.type != ArrowType::kFixedSizeList))
      continue;
    const uint64_t each = field.type == ArrowType::kStruct ? 1 : static_cast<uint64_t>(field.width);
    // 2^40 values of 2^31 items would overflow: compared by a division.
    for (const uint32_t child : field.children)
      if (each > 0 && arrays_[child].length / each < arrays_[i].length)
        return corrupt(fmt::format("column '{}' has too few values for the one above it",
                                   schema.fields[child].name));
  }
  return {};
}

Status ArrowBody::locate(uint32_t field, uint32_t number, ArrowExtent& out) {
  const ArrowPlace& place = places_[arrays_[field].buffer + number];
  out = {.offset = begin_ + static_cast<uint64_t>(place.offset),
         .stored = static_cast<uint64_t>(place.length)};
  out.decoded = out.stored;
  if (compression_ == ArrowCompression::kNone || out.stored == 0) return {};
  if (out.stored < kPrefix) return corrupt("a compressed buffer without its length").at(out.offset);
  Bytes prefix;
  HEADRACE_TRY(window_.bytes(out.offset, kPrefix, prefix));
  const auto decoded = load_le<int64_t>(prefix);
  out.offset += kPrefix;
  out.stored -= kPrefix;
  out.decoded = out.stored;
  if (decoded == -1) return {};  // did not become smaller: as it is
  if (decoded < 0 || static_cast<uint64_t>(decoded) > most_decoded(compression_, out.stored))
    return corrupt(fmt::format("a compressed buffer of {} bytes cannot open to {}", out.stored,
                               decoded))
        .at(out.offset);
  out.decoded = static_cast<uint64_t>(decoded);
  out.encoding = static_cast<uint32_t>(compression_);
  return {};
}

Status ArrowBody::read(uint32_t field, uint32_t number, uint64_t bytes, Buffer& out) {
  ArrowExtent extent;
  HEADRACE_TRY(locate(field, number, extent));
  if (bytes > extent.decoded)
    return corrupt(fmt::format("a buffer has {} bytes where {} are wanted", extent.decoded, bytes))
        .at(extent.offset);
  return open_extent(extent, bytes, out);
}

Status ArrowBody::read_all(uint32_t field, uint32_t number, Buffer& out) {
  ArrowExtent extent;
  HEADRACE_TRY(locate(field, number, extent));
  return open_extent(extent, extent.decoded, out);
}

Status ArrowBody::open_extent(const ArrowExtent& extent, uint64_t bytes, Buffer& out) {
  if (extent.encoding != 0) HEADRACE_TRY(spend(extent.decoded));
  out.resize(bytes);
  if (bytes == 0) return {};
  Bytes stored;
  if (extent.encoding == 0) {
    HEADRACE_TRY(window_.bytes(extent.offset, bytes, stored));
    std::memcpy(out.data(), stored.data(), bytes);
    return {};
  }
  HEADRACE_TRY(window_.bytes(extent.offset, extent.stored, stored));
  if (Status s = open_arrow_buffer(compression_, stored, extent.decoded, opened_); !s.ok())
    return s.at(extent.offset);
  std::memcpy(out.data(), opened_.data(), bytes);
  return {};
}

Status ArrowBody::spend_rows(uint64_t rows) {
  // Lists of no items take no bytes, however many there are.
  if (compression_ == ArrowCompression::kNone && rows > allowance_ / kRowBytes)
    return corrupt(fmt::format("a batch claims {} rows, for which there are no bytes", rows));
  return spend(rows * kRowBytes);
}

Status ArrowBody::spend(uint64_t bytes) {
  if (bytes > allowance_)
    return unsupported(
        fmt::format("what indexing needs of it opens to more than 256 MiB and {} times the file's "
                    "size: write it again without compression",
                    kRatio));
  allowance_ -= bytes;
  return {};
}

}  // namespace headrace
