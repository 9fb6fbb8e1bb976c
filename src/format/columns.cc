// SPDX-License-Identifier: Apache-2.0
#include "format/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/half.h"
#include "base/npy.h"
#include "format/records.h"

namespace headrace {
namespace {

struct ElementType {
  std::string_view descr;
  uint64_t bytes;
};
constexpr ElementType kNoType{"", 0};

// The numbers that MDS gives types: bits, plus 0 unsigned, 1 signed, 2 float.
struct MdsType {
  unsigned number;
  ElementType type;
};
constexpr MdsType kMdsTypes[] = {
    {8, {"|u1", 1}},  {9, {"|i1", 1}},  {16, {"<u2", 2}}, {17, {"<i2", 2}},
    {18, {"<f2", 2}}, {32, {"<u4", 4}}, {33, {"<i4", 4}}, {34, {"<f4", 4}},
    {64, {"<u8", 8}}, {65, {"<i8", 8}}, {66, {"<f8", 8}},
};

ElementType mds_type(unsigned number) {
  for (const MdsType& row : kMdsTypes)
    if (row.number == number) return row.type;
  return kNoType;
}

// LitData numbers torch's types by their names, so that some come twice.
ElementType torch_type(uint32_t number) {
  constexpr ElementType kTypes[] = {
      {"<f4", 4},   {"<f4", 4}, {"<f8", 8}, {"<f8", 8}, {"<c8", 8}, {"<c8", 8}, {"<c16", 16},
      {"<c16", 16}, {"<f2", 2}, {"<f2", 2}, kNoType,    {"|u1", 1}, {"|i1", 1}, {"<i2", 2},
      {"<i2", 2},   {"<i4", 4}, {"<i4", 4}, {"<i8", 8}, {"<i8", 8}, {"|b1", 1}, {"<u2", 2},
  };
  return number < std::size(kTypes) ? kTypes[number] : kNoType;
}

ElementType numpy_type(uint32_t number) {
  constexpr ElementType kTypes[] = {
      {"|i1", 1}, {"<i2", 2}, {"<i4", 4}, {"<i8", 8}, {"|u1", 1}, {"<u2", 2},   {"<u4", 4},
      {"<u8", 8}, {"<f2", 2}, {"<f4", 4}, {"<f8", 8}, {"<c8", 8}, {"<c16", 16}, {"|b1", 1},
  };
  return number < std::size(kTypes) ? kTypes[number] : kNoType;
}

Status short_array() {
  return corrupt("an array ends within its type and shape");
}

// | axes << 2 | width of the extents, as a power of 2 | the extents |
Status take_mds_shape(Bytes head, ArrayHead& out) {
  if (head.size() <= out.begin) return short_array();
  const auto packed = static_cast<unsigned>(head[out.begin++]);
  const uint64_t axes = packed >> 2;
  const uint64_t width = uint64_t{1} << (packed & 3);
  if (axes * width > head.size() - out.begin) return short_array();
  for (uint64_t i = 0; i < axes; ++i) {
    uint64_t extent = 0;
    for (uint64_t b = 0; b < width; ++b)
      extent |= static_cast<uint64_t>(head[out.begin + b]) << (8 * b);
    out.shape.push_back(extent);
    out.begin += width;
  }
  return {};
}

Status parse_mds_array(uint32_t encoding, Bytes head, ArrayHead& out) {
  if (encoding >= kTyped) {
    const auto dtype = static_cast<DType>(encoding - kTyped);
    out.descr = npy_descr(dtype);
    out.item_bytes = size_of(dtype);
    return take_mds_shape(head, out);
  }
  if (head.empty()) return short_array();
  const ElementType type = mds_type(static_cast<unsigned>(head[0]));
  if (type.bytes == 0)
    return corrupt(fmt::format("no type of an ndarray: {}", static_cast<unsigned>(head[0])));
  out.descr = type.descr;
  out.item_bytes = type.bytes;
  out.begin = 1;
  return take_mds_shape(head, out);
}

Status parse_litdata_array(uint32_t encoding, Bytes head, ArrayHead& out) {
  const auto number = [&](uint64_t i) {
    const auto v = load_le<uint32_t>(head.subspan(4 * i));
    return encoding == kTorchTensor ? __builtin_bswap32(v) : v;
  };
  if (head.size() < 8) return short_array();
  const ElementType type = encoding == kTorchTensor ? torch_type(number(0)) : numpy_type(number(0));
  if (type.bytes == 0)
    return unsupported(fmt::format("an array whose type has the number {}", number(0)));
  const uint64_t axes = number(1);
  if (axes > kMostAxes) return corrupt(fmt::format("an array of {} axes", axes));
  if (4 * axes > head.size() - 8) return short_array();
  out.descr = type.descr;
  out.item_bytes = type.bytes;
  for (uint64_t i = 0; i < axes; ++i) out.shape.push_back(number(2 + i));
  out.begin = 8 + 4 * axes;
  return {};
}

Status add_converted(uint32_t encoding, Extent place, const ReadBytes& read,
                     std::vector<ColumnValue>& out) {
  Bytes head;
  HEADRACE_TRY(read(place.begin, std::min(place.length, kMostArrayHead), head));
  ColumnValue value{.place = place, .converts = true};
  HEADRACE_TRY(parse_array(encoding, head, value.array));
  HEADRACE_TRY(check_array(value.array, place.length));
  out.push_back(std::move(value));
  return {};
}

Status add_list(const StoredColumn& column, Extent place, const ReadBytes& read,
                std::vector<ColumnValue>& out) {
  if (place.length < column.list_skip) return corrupt("a list that ends before its count");
  const Extent list{place.begin + column.list_skip, place.length - column.list_skip};
  Bytes head;
  HEADRACE_TRY(read(list.begin, std::min<uint64_t>(4, list.length), head));
  uint64_t head_bytes = 0;
  HEADRACE_TRY(picture_list_head(head, list.length, head_bytes));
  HEADRACE_TRY(read(list.begin, head_bytes, head));
  std::vector<ListedValue> values;
  HEADRACE_TRY(parse_picture_list(head, list.length, values));
  for (const ListedValue& value : values) {
    const Extent at{list.begin + value.begin, value.length};
    if (column.encoding == 0)
      out.push_back({.place = at});
    else
      HEADRACE_TRY(add_converted(column.encoding, at, read, out));
  }
  return {};
}

}  // namespace

ReadBytes reads_from(Bytes all) {
  return [all](uint64_t offset, uint64_t length, Bytes& out) -> Status {
    if (offset > all.size() || length > all.size() - offset)
      return corrupt("a sample runs past the end of its shard").at(offset);
    out = all.subspan(offset, length);
    return {};
  };
}

unsigned mds_type_number(std::string_view descr) {
  for (const MdsType& row : kMdsTypes)
    if (row.type.descr == descr) return row.number;
  return 0;
}

Status locate_columns(std::span<const StoredColumn> columns, Extent sample, const ReadBytes& read,
                      std::vector<Extent>& out) {
  const auto varying = static_cast<uint64_t>(std::count_if(
      columns.begin(), columns.end(), [](const StoredColumn& c) { return !c.fixed; }));
  out.clear();
  if (varying * 4 > sample.length)
    return corrupt(fmt::format("the sample has {} bytes, too few for the sizes of its {} columns",
                               sample.length, varying));
  Bytes sizes;
  HEADRACE_TRY(read(sample.begin, varying * 4, sizes));
  uint64_t at = varying * 4;
  for (uint64_t c = 0, v = 0; c < columns.size(); ++c) {
    const uint64_t length =
        columns[c].fixed ? *columns[c].fixed : load_le<uint32_t>(sizes.subspan(4 * v++));
    if (length > sample.length - at)
      return corrupt(fmt::format("column '{}' is {} bytes long where {} are left of the sample",
                                 columns[c].field.name, length, sample.length - at));
    out.push_back({sample.begin + at, length});
    at += length;
  }
  if (at != sample.length)
    return corrupt(
        fmt::format("the sample has {} bytes, its columns end after {}", sample.length, at));
  return {};
}

Status column_values(const StoredColumn& column, Extent place, const ReadBytes& read,
                     std::vector<ColumnValue>& out) {
  out.clear();
  Status status;
  if (column.reading == Reading::kPictures)
    status = add_list(column, place, read, out);
  else if (column.reading == Reading::kConvert)
    status = add_converted(column.encoding, place, read, out);
  else
    out.push_back({.place = place});
  return status.ok() ? status : status.with(fmt::format("column '{}'", column.field.name));
}

Status load_number(DType dtype, Bytes bytes, Number& out) {
  out = {};
  if (bytes.size() != size_of(dtype))
    return corrupt(fmt::format("a number of {} in {} bytes", dtype_name(dtype), bytes.size()));
  switch (dtype) {
    case DType::kU8:
      out.whole = load_le<uint8_t>(bytes);
      return {};
    case DType::kI8:
      out.whole = load_le<int8_t>(bytes);
      return {};
    case DType::kU16:
      out.whole = load_le<uint16_t>(bytes);
      return {};
    case DType::kI16:
      out.whole = load_le<int16_t>(bytes);
      return {};
    case DType::kU32:
      out.whole = load_le<uint32_t>(bytes);
      return {};
    case DType::kI32:
      out.whole = load_le<int32_t>(bytes);
      return {};
    case DType::kI64:
      out.whole = load_le<int64_t>(bytes);
      return {};
    case DType::kU64:
      out.whole = load_le<int64_t>(bytes);
      if (out.whole >= 0) return {};
      return unsupported(fmt::format("the number {} is beyond the 63 bits that an index holds",
                                     load_le<uint64_t>(bytes)));
    case DType::kF16:
      out.real = static_cast<double>(from_f16(load_le<uint16_t>(bytes)));
      break;
    case DType::kBF16:
      out.real = static_cast<double>(from_bf16(load_le<uint16_t>(bytes)));
      break;
    case DType::kF32:
      out.real = static_cast<double>(load_le<float>(bytes));
      break;
    case DType::kF64:
      out.real = load_le<double>(bytes);
      break;
  }
  out.is_float = true;
  return {};
}

Status parse_array(uint32_t encoding, Bytes head, ArrayHead& out) {
  out = {};
  if (encoding == kRawPicture) return parse_raw_picture(head, out);
  if (encoding == kTorchTensor || encoding == kNumpyArray)
    return parse_litdata_array(encoding, head, out);
  const bool typed = encoding >= kTyped && encoding < kTyped + kDTypes &&
                     encoding != kTyped + static_cast<uint32_t>(DType::kBF16);
  if (encoding == kNdarray || typed) return parse_mds_array(encoding, head, out);
  return internal("no array opens this way");
}

Status open_array(uint32_t encoding, Bytes stored, uint64_t decoded_bytes, Buffer& decoded) {
  ArrayHead head;
  HEADRACE_TRY(
      parse_array(encoding, stored.first(std::min<uint64_t>(stored.size(), kMostArrayHead)), head));
  HEADRACE_TRY(check_array(head, stored.size()));
  const uint64_t bytes = npy_bytes(head, stored.size());
  if (bytes != decoded_bytes) return not_as_indexed("array").at(0);
  decoded.resize(bytes);
  make_npy(head, stored, decoded.span());
  return {};
}

}  // namespace headrace
