// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/rows.h"

#include <fmt/format.h>

#include "base/half.h"

namespace headrace {
namespace {

bool has_wide_offsets(ArrowType type) {
  return type == ArrowType::kLargeBinary || type == ArrowType::kLargeUtf8 ||
         type == ArrowType::kLargeList;
}

bool is_view(ArrowType type) {
  return type == ArrowType::kBinaryView || type == ArrowType::kUtf8View;
}

constexpr uint64_t kView = 16;        // bytes of a view
constexpr uint64_t kInlineView = 12;  // bytes of a value that lies in its view

bool bit(Bytes bits, uint64_t at) {
  return (static_cast<unsigned>(bits[at / 8]) >> (at % 8) & 1) != 0;
}

template <typename T>
T element(Bytes words, uint64_t at) {
  return load_le<T>(words.subspan(at * sizeof(T)));
}

void take_integer(Bytes words, DType dtype, uint64_t at, int64_t& out) {
  switch (dtype) {
    case DType::kU8:
      out = element<uint8_t>(words, at);
      break;
    case DType::kI8:
      out = element<int8_t>(words, at);
      break;
    case DType::kU16:
      out = element<uint16_t>(words, at);
      break;
    case DType::kI16:
      out = element<int16_t>(words, at);
      break;
    case DType::kU32:
      out = element<uint32_t>(words, at);
      break;
    case DType::kI32:
      out = element<int32_t>(words, at);
      break;
    default:
      out = element<int64_t>(words, at);
      break;
  }
}

double real_number(Bytes words, DType dtype, uint64_t at) {
  if (dtype == DType::kF16) return static_cast<double>(from_f16(element<uint16_t>(words, at)));
  if (dtype == DType::kF32) return static_cast<double>(element<float>(words, at));
  return element<double>(words, at);
}

Status too_short(std::string_view name) {
  return corrupt(fmt::format("the values of column '{}' are cut short", name));
}

}  // namespace

Status ArrowRows::load(std::span<const ArrowLeaf> leaves) {
  shared_bytes_ = 0;
  for (Held& held : held_) held.is_loaded = false;
  for (const ArrowLeaf& leaf : leaves)
    if (Status s = load_leaf(leaf); !s.ok())
      return s.with(fmt::format("column '{}'", leaf.field.name));
  return {};
}

Status ArrowRows::load_leaf(const ArrowLeaf& leaf) {
  for (const uint32_t node : leaf.above) HEADRACE_TRY(load_nulls(node));
  if (leaf.list) {
    HEADRACE_TRY(load_nulls(*leaf.list));
    if (schema_.fields[*leaf.list].type != ArrowType::kFixedSizeList)
      HEADRACE_TRY(load_offsets(*leaf.list));
  }
  for (const uint32_t node : leaf.within) HEADRACE_TRY(load_nulls(node));
  HEADRACE_TRY(load_nulls(leaf.node));
  const ArrowField& field = schema_.fields[leaf.node];
  if (field.dictionary)
    return body_.read(leaf.node, 1, body_.array(leaf.node).length * size_of(field.index_type),
                      held_[leaf.node].words);
  switch (leaf.form) {
    case ArrowForm::kBlob:
      return load_blob(leaf);
    case ArrowForm::kNumber:
      return load_numbers(leaf.node);
    default:
      return load_array(leaf);
  }
}

Status ArrowRows::load_nulls(uint32_t node) {
  Held& held = held_[node];
  if (held.is_loaded) return {};
  held.is_loaded = true;
  held.has_nulls = body_.array(node).nulls > 0;
  if (!held.has_nulls) return {};
  return body_.read(node, 0, (body_.array(node).length + 7) / 8, held.nulls);
}

// An array of no values may lack even the one offset.
Status ArrowRows::load_offsets(uint32_t node) {
  const uint64_t length = body_.array(node).length;
  const uint64_t width = has_wide_offsets(schema_.fields[node].type) ? 8 : 4;
  return body_.read(node, 1, length == 0 ? 0 : (length + 1) * width, held_[node].words);
}

Status ArrowRows::load_blob(const ArrowLeaf& leaf) {
  Held& held = held_[leaf.node];
  const ArrowValues& array = body_.array(leaf.node);
  if (!is_view(schema_.fields[leaf.node].type)) {
    HEADRACE_TRY(load_offsets(leaf.node));
    HEADRACE_TRY(locate(leaf.node, 2, held.data));
    return leaf.is_key ? body_.read_all(leaf.node, 2, held.text) : Status();
  }
  HEADRACE_TRY(body_.read(leaf.node, 1, array.length * kView, held.words));
  HEADRACE_TRY(locate(leaf.node, 1, held.data));
  held.more.resize(array.variadic);
  for (uint32_t v = 0; v < array.variadic; ++v)
    HEADRACE_TRY(locate(leaf.node, 2 + v, held.more[v]));
  return {};
}

// The elements are not read: only whether they are all there.
Status ArrowRows::load_array(const ArrowLeaf& leaf) {
  Held& held = held_[leaf.node];
  uint64_t values = body_.array(leaf.node).length;
  if (leaf.form == ArrowForm::kVarying) {
    HEADRACE_TRY(load_offsets(leaf.node));
    values = body_.array(schema_.fields[leaf.node].children[0]).length;
  }
  for (uint32_t node = leaf.node; node != leaf.numbers; node = schema_.fields[node].children[0])
    HEADRACE_TRY(load_nulls(schema_.fields[node].children[0]));
  HEADRACE_TRY(locate(leaf.numbers, 1, held.data));
  if (held.data.decoded / leaf.stride < values) return too_short(leaf.field.name);
  return {};
}

Status ArrowRows::load_numbers(uint32_t node) {
  const ArrowField& field = schema_.fields[node];
  const uint64_t length = body_.array(node).length;
  const uint64_t bytes =
      field.type == ArrowType::kBool ? (length + 7) / 8 : length * size_of(*field.dtype);
  return body_.read(node, 1, bytes, held_[node].words);
}

// Of values, which stay where they are.
Status ArrowRows::locate(uint32_t node, uint32_t number, ArrowExtent& out) {
  HEADRACE_TRY(body_.locate(node, number, out));
  if (out.encoding != 0) shared_bytes_ += out.decoded;
  return {};
}

bool ArrowRows::is_null(uint32_t node, uint64_t at) const {
  const Held& held = held_[node];
  return held.has_nulls && !bit(held.nulls.bytes(), at);
}

bool ArrowRows::has_null(uint32_t node, uint64_t begin, uint64_t end) const {
  if (!held_[node].has_nulls) return false;
  for (uint64_t at = begin; at < end; ++at)
    if (is_null(node, at)) return true;
  return false;
}

Status ArrowRows::range(uint32_t node, uint64_t at, uint64_t limit, uint64_t& begin,
                        uint64_t& end) const {
  const Bytes words = held_[node].words.bytes();
  if (has_wide_offsets(schema_.fields[node].type)) {
    begin = element<uint64_t>(words, at);
    end = element<uint64_t>(words, at + 1);
  } else {
    begin = element<uint32_t>(words, at);
    end = element<uint32_t>(words, at + 1);
  }
  if (begin <= end && end <= limit) return {};
  return corrupt(fmt::format("column '{}' has a value from {} to {} of {}",
                             schema_.fields[node].name, begin, end, limit));
}

Status ArrowRows::items(uint32_t list, uint64_t row, uint64_t& begin, uint64_t& end) const {
  const ArrowField& field = schema_.fields[list];
  if (field.type != ArrowType::kFixedSizeList)
    return range(list, row, body_.array(field.children[0]).length, begin, end);
  begin = row * static_cast<uint64_t>(field.width);
  end = begin + static_cast<uint64_t>(field.width);
  return {};
}

Status ArrowRows::values(const ArrowLeaf& leaf, uint64_t row, std::vector<ArrowValue>& out) {
  out.clear();
  for (const uint32_t node : leaf.above)
    if (is_null(node, row)) return {};
  if (!leaf.list) return add_value(leaf, row, out);
  if (is_null(*leaf.list, row)) return {};
  uint64_t begin = 0;
  uint64_t end = 0;
  HEADRACE_TRY(items(*leaf.list, row, begin, end));
  bool whole = true;
  for (uint64_t at = begin; at < end && whole; ++at) {
    for (const uint32_t node : leaf.within) whole = whole && !is_null(node, at);
    if (whole) HEADRACE_TRY(add_value(leaf, at, out));
    whole = whole && out.size() == at - begin + 1;
  }
  if (whole) return {};
  // A list without one of its items would be another one.
  ++lists_with_nulls_;
  out.clear();
  return {};
}

Status ArrowRows::add_value(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) {
  if (is_null(leaf.node, at)) return {};
  if (schema_.fields[leaf.node].dictionary) return add_known(leaf, at, out);
  switch (leaf.form) {
    case ArrowForm::kBlob:
      return is_view(schema_.fields[leaf.node].type) ? add_view(leaf, at, out)
                                                     : add_blob(leaf, at, out);
    case ArrowForm::kNumber:
      return add_number(leaf, at, out);
    default:
      return add_array(leaf, at, out);
  }
}

Status ArrowRows::add_known(const ArrowLeaf& leaf, uint64_t at,
                            std::vector<ArrowValue>& out) const {
  const ArrowField& field = schema_.fields[leaf.node];
  const auto known = dictionaries_.find(*field.dictionary);
  if (known == dictionaries_.end() || !known->second.is_there)
    return corrupt(
        fmt::format("the dictionary of column '{}' does not come before its use", leaf.field.name));
  int64_t number = 0;
  take_integer(held_[leaf.node].words.bytes(), field.index_type, at, number);
  const ArrowDictionary& dictionary = known->second;
  if (number < 0 || static_cast<uint64_t>(number) >= dictionary.values.size())
    return corrupt(fmt::format("column '{}' names value {} of a dictionary of {}", leaf.field.name,
                               number, dictionary.values.size()));
  const auto place = static_cast<size_t>(number);
  if (!dictionary.is_null[place]) out.push_back(dictionary.values[place]);
  return {};
}

Status ArrowRows::add_blob(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) const {
  const Held& held = held_[leaf.node];
  uint64_t begin = 0;
  uint64_t end = 0;
  HEADRACE_TRY(range(leaf.node, at, held.data.decoded, begin, end));
  out.push_back({.place = held.data.piece(begin, end - begin)});
  return {};
}

// 4 bytes of length; then a short value itself, or 4 of its bytes, its buffer and its offset.
Status ArrowRows::add_view(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) const {
  const Held& held = held_[leaf.node];
  const Bytes view = held.words.bytes().subspan(at * kView, kView);
  const uint64_t length = load_le<uint32_t>(view);
  if (length <= kInlineView) {
    out.push_back({.place = held.data.piece(at * kView + 4, length)});
    return {};
  }
  const uint64_t buffer = load_le<uint32_t>(view.subspan(8));
  const uint64_t begin = load_le<uint32_t>(view.subspan(12));
  if (buffer >= held.more.size() || begin > held.more[buffer].decoded ||
      length > held.more[buffer].decoded - begin)
    return corrupt(fmt::format("column '{}' has a view of {} bytes outside of its buffers",
                               leaf.field.name, length));
  out.push_back({.place = held.more[buffer].piece(begin, length)});
  return {};
}

Status ArrowRows::add_array(const ArrowLeaf& leaf, uint64_t at, std::vector<ArrowValue>& out) {
  uint64_t begin = at;
  uint64_t end = at + 1;
  uint32_t node = leaf.node;
  if (leaf.form == ArrowForm::kVarying) {
    HEADRACE_TRY(items(leaf.node, at, begin, end));
    node = schema_.fields[node].children[0];
  }
  const PartValue place =
      held_[leaf.node].data.piece(begin * leaf.stride, (end - begin) * leaf.stride);
  // Each level down has so many times more elements; a null among them has no number.
  bool whole = node == leaf.node || !has_null(node, begin, end);
  for (; whole && node != leaf.numbers; node = schema_.fields[node].children[0]) {
    begin *= static_cast<uint64_t>(schema_.fields[node].width);
    end *= static_cast<uint64_t>(schema_.fields[node].width);
    whole = !has_null(schema_.fields[node].children[0], begin, end);
  }
  if (whole)
    out.push_back({.place = place});
  else if (!leaf.list)
    ++lists_with_nulls_;
  return {};
}

Status ArrowRows::add_number(const ArrowLeaf& leaf, uint64_t at,
                             std::vector<ArrowValue>& out) const {
  const ArrowField& field = schema_.fields[leaf.node];
  const Bytes words = held_[leaf.node].words.bytes();
  ArrowValue value;
  if (field.type == ArrowType::kBool) {
    value.integer = bit(words, at) ? 1 : 0;
  } else if (leaf.field.kind == Kind::kFloat) {
    value.real = real_number(words, *field.dtype, at);
  } else {
    take_integer(words, *field.dtype, at, value.integer);
    if (field.dtype == DType::kU64 && value.integer < 0)
      return unsupported(
          fmt::format("column '{}' holds {}, and numbers above 2^63 are not read; write the file "
                      "again with the column as text, or without it",
                      leaf.field.name, static_cast<uint64_t>(value.integer)));
  }
  out.push_back(value);
  return {};
}

Status ArrowRows::key(const ArrowLeaf& leaf, uint64_t row, std::string_view& out) const {
  out = {};
  if (is_null(leaf.node, row)) return {};
  const Held& held = held_[leaf.node];
  uint64_t begin = 0;
  uint64_t end = 0;
  HEADRACE_TRY(range(leaf.node, row, held.text.size(), begin, end));
  out = as_text(held.text.bytes().subspan(begin, end - begin));
  return {};
}

}  // namespace headrace
