// SPDX-License-Identifier: Apache-2.0
#include "format/mds/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace headrace {
namespace {

constexpr uint64_t kMostConfig = uint64_t{16} << 20;

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"uint8", DType::kU8},    {"int8", DType::kI8},     {"uint16", DType::kU16},
    {"int16", DType::kI16},   {"uint32", DType::kU32},  {"int32", DType::kI32},
    {"uint64", DType::kU64},  {"int64", DType::kI64},   {"float16", DType::kF16},
    {"float32", DType::kF32}, {"float64", DType::kF64},
};

std::optional<DType> type_named(std::string_view name) {
  for (const TypeName& row : kTypeNames)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

struct PlainEncoding {
  std::string_view name;
  Kind kind;
};
// A decimal keeps the digits it has: as text, because a float would change them.
constexpr PlainEncoding kPlain[] = {
    {"str", Kind::kText},  {"str_int", Kind::kInt}, {"str_decimal", Kind::kText},
    {"json", Kind::kJson}, {"jpeg", Kind::kJpeg},   {"png", Kind::kPng},
};

struct ListEncoding {
  std::string_view name;
  Kind kind;
  uint64_t skip;  // "list[…]" keeps a word free
  uint32_t encoding;
};
constexpr ListEncoding kLists[] = {
    {"jpeg_array", Kind::kJpeg, 0, 0},         {"jpegarray", Kind::kJpeg, 0, 0},
    {"list[jpeg]", Kind::kJpeg, 4, 0},         {"list[png]", Kind::kPng, 4, 0},
    {"list[pil]", Kind::kNpy, 4, kRawPicture},
};

bool is_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

// A column of bytes that is called "count" holds no decimal number.
Kind kind_of_bytes(std::string_view name) {
  const Kind kind = kind_of_extension(name);
  return kind == Kind::kInt ? Kind::kBytes : kind;
}

StoredColumn number_column(const std::string& name, DType dtype) {
  return {.field = {.name = name,
                    .kind = is_float(dtype) ? Kind::kFloat : Kind::kInt,
                    .storage = Storage::kInline,
                    .dtype = dtype},
          .reading = Reading::kNumber,
          .fixed = size_of(dtype),
          .dtype = dtype};
}

// "3,224,224".
bool parse_shape(std::string_view text, std::vector<int64_t>& out, uint64_t& elements) {
  elements = 1;
  while (true) {
    const std::string_view number = text.substr(0, text.find(','));
    int64_t extent = 0;
    const auto [stop, error] =
        std::from_chars(number.data(), number.data() + number.size(), extent);
    if (error != std::errc() || stop != number.data() + number.size() || extent < 1 ||
        out.size() == kMostAxes || elements > (uint64_t{1} << 32) / static_cast<uint64_t>(extent))
      return false;
    elements *= static_cast<uint64_t>(extent);
    out.push_back(extent);
    if (number.size() == text.size()) return true;
    text.remove_prefix(number.size() + 1);
  }
}

// "ndarray", "ndarray:float32", "ndarray:float32:3,4".
Result<StoredColumn> array_column(const MdsColumn& column) {
  const auto wrong = [&column] {
    return corrupt(fmt::format("column '{}' has the encoding '{}', which names no type and shape",
                               column.name, column.encoding));
  };
  StoredColumn out{.field = {.name = column.name, .kind = Kind::kNpy},
                   .reading = Reading::kConvert,
                   .encoding = kNdarray};
  std::string_view rest = column.encoding;
  rest.remove_prefix(std::string_view("ndarray").size());
  if (rest.empty() || rest == ":") return out;
  rest.remove_prefix(1);
  const std::optional<DType> dtype = type_named(rest.substr(0, rest.find(':')));
  if (!dtype) return wrong();
  out.encoding = kTyped + static_cast<uint32_t>(*dtype);
  if (rest.find(':') == std::string_view::npos) return out;
  rest.remove_prefix(rest.find(':') + 1);
  uint64_t elements = 0;
  Field& field = out.field;
  if (!parse_shape(rest, field.shape, elements)) return wrong();
  field.kind = Kind::kArray;
  field.dtype = dtype;
  out.fixed = elements * size_of(*dtype);
  out.reading = Reading::kPlace;
  out.encoding = 0;
  return out;
}

Status take_texts(const Json& config, std::string_view name, std::vector<std::string>& out) {
  const Json* list = config.find(name);
  if (list == nullptr || !list->is_list())
    return corrupt(fmt::format("the config has no list '{}'", name));
  for (const Json& item : list->items()) {
    if (!item.is_text())
      return corrupt(fmt::format("'{}' of the config is no list of texts", name));
    out.push_back(item.text());
  }
  return {};
}

// What the config says is fixed must be what the encoding makes of it.
Status check_sizes(const Json& config, std::span<const MdsColumn> columns) {
  const Json* sizes = config.find("column_sizes");
  if (sizes == nullptr || sizes->items().size() != columns.size())
    return corrupt("the config has not as many 'column_sizes' as columns");
  for (size_t i = 0; i < columns.size(); ++i) {
    HEADRACE_ASSIGN(const StoredColumn column, read_mds_column(columns[i]));
    const Json& said = sizes->items()[i];
    const std::string made = column.fixed ? fmt::format("{}", *column.fixed) : "null";
    if ((said.is_null() ? "null" : said.text()) != made)
      return corrupt(fmt::format("column '{}' has the size '{}' in the config, '{}' has {}",
                                 columns[i].name, said.text(), columns[i].encoding, made));
  }
  return {};
}

}  // namespace

Result<StoredColumn> read_mds_column(const MdsColumn& column) {
  const std::string_view encoding = column.encoding;
  if (encoding == "bytes")
    return StoredColumn{.field = {.name = column.name, .kind = kind_of_bytes(column.name)}};
  if (encoding == "str_float")
    return StoredColumn{.field = {.name = column.name,
                                  .kind = Kind::kFloat,
                                  .storage = Storage::kInline,
                                  .dtype = DType::kF64},
                        .reading = Reading::kDigits};
  for (const PlainEncoding& plain : kPlain)
    if (plain.name == encoding) {
      return StoredColumn{.field = {.name = column.name, .kind = plain.kind},
                          .is_key = column.name == kMdsKey && encoding == "str"};
    }
  for (const ListEncoding& list : kLists)
    if (list.name == encoding)
      return StoredColumn{.field = {.name = column.name, .kind = list.kind},
                          .reading = Reading::kPictures,
                          .encoding = list.encoding,
                          .list_skip = list.skip};
  if (encoding == "int") return number_column(column.name, DType::kI64);
  if (const std::optional<DType> dtype = type_named(encoding))
    return number_column(column.name, *dtype);
  if (encoding == "pil")
    return StoredColumn{.field = {.name = column.name, .kind = Kind::kNpy},
                        .reading = Reading::kConvert,
                        .encoding = kRawPicture};
  if (encoding == "ndarray" || encoding.starts_with("ndarray:")) return array_column(column);
  if (encoding == "pkl")
    return unsupported(fmt::format(
        "column '{}' holds pickles, which could run any program: they are not read; write it "
        "as json, bytes or ndarray",
        column.name));
  return unsupported(
      fmt::format("column '{}' has the encoding '{}', which this build does not know", column.name,
                  column.encoding));
}

std::string mds_config(std::span<const MdsColumn> columns) {
  std::string encodings, names, sizes;
  for (const MdsColumn& column : columns) {
    const std::string_view comma = names.empty() ? "" : ", ";
    encodings.append(comma).append(json_quoted(column.encoding));
    names.append(comma).append(json_quoted(column.name));
    const Result<StoredColumn> read = read_mds_column(column);
    sizes.append(comma).append(
        read.ok() && read.value().fixed ? fmt::format("{}", *read.value().fixed) : "null");
  }
  return fmt::format(
      R"("column_encodings": [{}], "column_names": [{}], "column_sizes": [{}], "compression": null, )"
      R"("format": "mds", "hashes": [], "size_limit": null, "version": {})",
      encodings, names, sizes, kMdsVersion);
}

Result<std::vector<MdsColumn>> parse_mds_config(std::string_view text) {
  HEADRACE_ASSIGN(const Json config, Json::parse(text));
  const Json* version = config.find("version");
  const Json* format = config.find("format");
  if (format == nullptr || version == nullptr || format->text() != "mds")
    return corrupt("the config of the shard does not say that it is mds");
  if (version->count() != kMdsVersion)
    return unsupported(fmt::format("version {} of MDS; {} is read", version->text(), kMdsVersion));
  std::vector<std::string> names, encodings;
  HEADRACE_TRY(take_texts(config, "column_names", names));
  HEADRACE_TRY(take_texts(config, "column_encodings", encodings));
  if (names.size() != encodings.size() || names.size() > kMaxFields)
    return corrupt(fmt::format("the config names {} columns and {} encodings", names.size(),
                               encodings.size()));
  std::set<std::string_view> seen;
  std::vector<MdsColumn> out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second)
      return corrupt(fmt::format("the config names column '{}' twice", names[i]));
    out.push_back({names[i], encodings[i]});
  }
  HEADRACE_TRY(check_sizes(config, out));
  return out;
}

Result<MdsShard> MdsShard::open(uint64_t bytes, ReadBytes read) {
  if (bytes < 8) return corrupt(fmt::format("{} bytes are no MDS shard", bytes)).at(0);
  Bytes head;
  HEADRACE_TRY(read(0, 4, head));
  const uint64_t samples = load_le<uint32_t>(head);
  const uint64_t table_end = 4 * (samples + 2);
  if (table_end > bytes)
    return corrupt(fmt::format("the offsets of {} samples do not fit into {} bytes: cut short, or "
                               "no MDS shard",
                               samples, bytes))
        .at(0);
  MdsShard shard;
  HEADRACE_TRY(read(4, 4 * (samples + 1), head));
  shard.offsets_.reserve(samples + 1);
  for (uint64_t i = 0; i <= samples; ++i) {
    shard.offsets_.push_back(load_le<uint32_t>(head.subspan(4 * i)));
    const uint64_t least = i == 0 ? table_end : shard.offsets_[i - 1];
    if (shard.offsets_[i] < least || shard.offsets_[i] > bytes)
      return corrupt(fmt::format("sample {} of {} begins at {}, which is not between {} and the "
                                 "{} bytes of the shard",
                                 i, samples, shard.offsets_[i], least, bytes))
          .at(4 + 4 * i);
  }
  if (shard.offsets_.back() != bytes)
    return corrupt(fmt::format("the samples end at {}, the shard has {} bytes",
                               shard.offsets_.back(), bytes))
        .at(4 * (samples + 1));
  const uint64_t config = shard.offsets_.front() - table_end;
  if (config > kMostConfig)
    return corrupt(fmt::format("a config of {} bytes", config)).at(table_end);
  HEADRACE_TRY(read(table_end, config, head));
  const Result<std::vector<MdsColumn>> columns = parse_mds_config(as_text(head));
  if (!columns.ok())
    return Status(columns.status().code(),
                  fmt::format("the config of the shard: {}", columns.status().message()))
        .at(table_end);
  for (const MdsColumn& column : columns.value()) {
    HEADRACE_ASSIGN(StoredColumn made, read_mds_column(column));
    shard.columns_.push_back(std::move(made));
  }
  shard.read_ = std::move(read);
  return shard;
}

bool looks_like_mds(Bytes head) {
  if (head.size() < 12) return false;
  const uint64_t samples = load_le<uint32_t>(head);
  const uint64_t table_end = 4 * (samples + 2);
  uint64_t last = load_le<uint32_t>(head.subspan(4));
  // The config is at least {"format": "mds"}, and a few hundred bytes in truth.
  if (last < table_end + 17 || last - table_end > kMostConfig) return false;
  for (uint64_t at = 8; at < std::min<uint64_t>(table_end, head.size() - 3); at += 4) {
    const uint64_t next = load_le<uint32_t>(head.subspan(at));
    if (next < last) return false;
    last = next;
  }
  return table_end >= head.size() || head[table_end] == std::byte{'{'};
}

}  // namespace headrace
