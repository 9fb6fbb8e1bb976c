// SPDX-License-Identifier: Apache-2.0
#include "format/beton/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr uint16_t kVersion = 2;
constexpr uint64_t kNameBytes = 16;
constexpr uint64_t kArguments = 1024;
constexpr uint32_t kSmallestPage = 1u << 21;
constexpr size_t kMostAxes = 32;

bool is_known(uint8_t type) {
  return type <= static_cast<uint8_t>(BetonType::kTensor) ||
         type == static_cast<uint8_t>(BetonType::kCustom);
}

// ASCII, and zeros to the end.
bool take_name(Bytes raw, std::string& out) {
  const std::string_view text = as_text(raw);
  const std::string_view name = text.substr(0, text.find('\0'));
  out = name;
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; }) &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(name.size()), text.end(),
                     [](char c) { return c == '\0'; });
}

// The type's one name in `[["", "<f4"]]`; "" where it is no such list.
std::string_view numpy_type(std::string_view json) {
  constexpr std::string_view kBefore = "[[\"\", \"";
  constexpr std::string_view kAfter = "\"]]";
  if (!json.starts_with(kBefore) || !json.ends_with(kAfter)) return {};
  json.remove_prefix(kBefore.size());
  if (json.size() <= kAfter.size()) return {};
  json.remove_suffix(kAfter.size());
  return json.find('"') == std::string_view::npos ? json : std::string_view();
}

struct NumpyType {
  std::optional<DType> dtype = {};
  uint64_t bytes = 0;
};

// "<f4", "|u1", …: order, letter, bytes.  Without a dtype where only its size is known.
Result<NumpyType> parse_type(std::string_view text) {
  const bool is_type =
      text.size() >= 3 && text.size() <= 6 &&
      std::all_of(text.begin() + 2, text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_type) return unsupported(fmt::format("an array of '{}' is not read", text));
  uint64_t bytes = 0;
  for (const char c : text.substr(2)) bytes = bytes * 10 + static_cast<uint64_t>(c - '0');
  if (text[1] == 'U') bytes *= 4;
  if (text[0] == '>' && bytes > 1) return NumpyType{{}, bytes};
  if (text.substr(1) == "b1") return NumpyType{DType::kU8, 1};
  const std::string name = fmt::format("{}{}", text[1], 8 * bytes);
  return NumpyType{dtype_named(name), bytes};
}

Status parse_array(Bytes arguments, BetonField& field) {
  std::vector<int64_t>& shape = field.shape;
  for (size_t axis = 0; axis < kMostAxes; ++axis) {
    const auto extent = load_le<uint64_t>(arguments.subspan(8 * axis));
    if (extent > static_cast<uint64_t>(INT64_MAX)) return corrupt("a shape that cannot be");
    shape.push_back(static_cast<int64_t>(extent));
  }
  while (!shape.empty() && shape.back() == 0) shape.pop_back();
  const Bytes rest = arguments.subspan(8 * kMostAxes);
  const auto length = load_le<uint64_t>(rest);
  if (length > rest.size() - 8) return corrupt("the name of the type is longer than its place");
  field.type_text = numpy_type(as_text(rest.subspan(8, length)));
  HEADRACE_ASSIGN(const NumpyType type, parse_type(field.type_text));
  field.dtype = type.dtype;
  field.bytes = type.bytes;
  for (const int64_t extent : shape) {
    const auto n = static_cast<uint64_t>(extent);
    if (n != 0 && field.bytes > (uint64_t{1} << 40) / n) return corrupt("a shape that cannot be");
    field.bytes *= n;
  }
  return {};
}

// How much of a row the field takes, and to what it is aligned.
struct RowSpace {
  uint64_t bytes;
  uint64_t align;
};

RowSpace row_space(BetonType type) {
  switch (type) {
    case BetonType::kImage:
      return {13, 1};
    case BetonType::kBytes:
    case BetonType::kJson:
      return {16, 1};
    default:
      return {8, 8};
  }
}

Status take_descriptor(Bytes raw, BetonField& field) {
  const auto type = static_cast<uint8_t>(raw[0]);
  if (!take_name(raw.subspan(1, kNameBytes), field.name))
    return corrupt("the name of a field is none");
  if (!is_known(type))
    return corrupt(fmt::format("field '{}' is of no type: {}", field.name, type));
  field.type = static_cast<BetonType>(type);
  if (field.type == BetonType::kCustom)
    return unsupported(fmt::format(
        "field '{}' is of a type of the writer's own, which only its program knows", field.name));
  if (field.type != BetonType::kArray && field.type != BetonType::kTensor) return {};
  if (Status s = parse_array(raw.subspan(1 + kNameBytes, kArguments), field); !s.ok())
    return s.with(fmt::format("field '{}'", field.name));
  return {};
}

Status lay_out_rows(BetonLayout& layout) {
  uint64_t align = 1;
  for (BetonField& field : layout.fields) {
    const RowSpace space = row_space(field.type);
    align = std::max(align, space.align);
    field.in_row = (layout.row_bytes + space.align - 1) / space.align * space.align;
    layout.row_bytes = field.in_row + space.bytes;
  }
  layout.row_bytes = (layout.row_bytes + align - 1) / align * align;
  for (size_t i = 1; i < layout.fields.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (layout.fields[i].name == layout.fields[k].name)
        return corrupt(fmt::format("two fields are called '{}'", layout.fields[i].name));
  return {};
}

// Compared without adding or multiplying what the file says.
Status check_tables(const BetonLayout& layout, uint64_t file_bytes) {
  const uint64_t at = layout.allocations_at;
  if (at < layout.rows_at || at > file_bytes ||
      layout.samples > (at - layout.rows_at) / layout.row_bytes)
    return corrupt(fmt::format("{} rows of {} bytes are not within the file: it is cut short",
                               layout.samples, layout.row_bytes))
        .at(8);
  const auto in_pages =
      static_cast<uint64_t>(std::count_if(layout.fields.begin(), layout.fields.end(),
                                          [](const BetonField& f) { return f.lies_in_pages(); }));
  const uint64_t allocations = (file_bytes - at) / kBetonAllocation;
  if ((file_bytes - at) % kBetonAllocation != 0 || allocations != layout.samples * in_pages)
    return corrupt(fmt::format("the table of allocations is cut short: {} bytes for {} values",
                               file_bytes - at, layout.samples * in_pages))
        .at(at);
  return {};
}

}  // namespace

bool looks_like_beton(Bytes head) {
  if (head.size() < kBetonHeader + 1 + kNameBytes) return false;
  const auto page = load_le<uint32_t>(head.subspan(4));
  std::string name;
  return load_le<uint16_t>(head) == kVersion && load_le<uint16_t>(head.subspan(2)) > 0 &&
         page >= kSmallestPage && std::has_single_bit(page) &&
         is_known(static_cast<uint8_t>(head[kBetonHeader])) &&
         take_name(head.subspan(kBetonHeader + 1, kNameBytes), name);
}

Result<BetonLayout> read_beton_layout(const ShardInput& shard) {
  if (shard.info.bytes < kBetonHeader)
    return corrupt("the file ends within its header").at(shard.info.bytes);
  Buffer head;
  HEADRACE_TRY(shard.store.read_at(shard.info.path, 0, kBetonHeader, head));
  const Bytes b = head.bytes();
  if (load_le<uint16_t>(b) != kVersion)
    return unsupported(fmt::format("a .beton of version {}, or none: only {} is read",
                                   load_le<uint16_t>(b), kVersion))
        .at(0);
  const uint64_t fields = load_le<uint16_t>(b.subspan(2));
  BetonLayout layout{.samples = load_le<uint64_t>(b.subspan(8)),
                     .rows_at = kBetonHeader + fields * kBetonDescriptor,
                     .allocations_at = load_le<uint64_t>(b.subspan(16))};
  if (fields == 0 || fields > kMaxFields || layout.rows_at > shard.info.bytes)
    return corrupt(fmt::format("descriptors of {} fields are not within the file", fields)).at(2);
  if (layout.allocations_at == 0)
    return corrupt("its writer was interrupted: there is no table of allocations").at(16);
  Buffer descriptors;
  HEADRACE_TRY(
      shard.store.read_at(shard.info.path, kBetonHeader, fields * kBetonDescriptor, descriptors));
  for (uint64_t f = 0; f < fields; ++f) {
    const Bytes raw = descriptors.bytes().subspan(f * kBetonDescriptor, kBetonDescriptor);
    if (Status s = take_descriptor(raw, layout.fields.emplace_back()); !s.ok())
      return s.at(kBetonHeader + f * kBetonDescriptor);
  }
  HEADRACE_TRY(lay_out_rows(layout));
  HEADRACE_TRY(check_tables(layout, shard.info.bytes));
  return layout;
}

}  // namespace headrace
