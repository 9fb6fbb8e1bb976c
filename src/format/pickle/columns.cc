// SPDX-License-Identifier: Apache-2.0
//
// The values of a pickled dict on their way into a part: numbers and texts into the index,
// bytes and arrays where they lie in the file.

#include <fmt/format.h>

#include "format/npz/file.h"
#include "format/pickle/data.h"
#include "format/pickle/writer.h"

namespace headrace {
namespace {

using Type = PickleNode::Type;

Field number_field(const std::string& name, DType dtype) {
  return {.name = name,
          .kind = dtype >= DType::kF16 ? Kind::kFloat : Kind::kInt,
          .storage = Storage::kInline,
          .dtype = dtype};
}

void add_number_to(PartBuilder& part, uint32_t field, const NpzNumber& number) {
  if (number.is_float)
    part.add_float(field, number.number);
  else
    part.add_int(field, number.integer);
}

}  // namespace

// Arrays of one axis go into the index; rows of others lie one behind the other.
Status PickleData::open_array(const Entry& entry, Column& out) {
  HEADRACE_ASSIGN(out.array, pickle_array(pickle_, *entry.value));
  NpyHeader& header = out.array.header;
  const bool one_axis = header.shape.size() == 1;
  if (one_axis && header.type.is_text() && header.type.item_bytes > 0) {
    if (header.type.kind == 'U' && header.type.big_endian)
      return unsupported("text that is big-endian is not read");
    out.from = Column::From::kTexts;
    out.field = part_.field(entry.name, header.type.kind == 'U' ? Kind::kText : Kind::kBytes,
                            Storage::kInline);
    return {};
  }
  const std::optional<DType> dtype = header.type.dtype();
  if (one_axis && dtype && *dtype != DType::kU64) {
    out.from = Column::From::kNumbers;
    out.numbers.assign(out.array.data.begin(), out.array.data.end());
    HEADRACE_TRY(normalise_npy(header, out.numbers));
    out.field = part_.field(number_field(entry.name, *dtype));
    return {};
  }
  out.from = Column::From::kArrayRows;
  NpyHeader row = header;
  row.shape.erase(row.shape.begin());
  HEADRACE_ASSIGN(out.field, array_field(entry.name, row));
  out.place = place(out.array.data, out.array.encoded);
  return {};
}

Status PickleData::open_list(const Entry& entry, Column& out) {
  std::vector<const PickleNode*> values;
  bool has_arrays = false;
  for (const uint32_t n : pickle_.items[entry.value->items]) {
    values.push_back(&pickle_.nodes[n]);
    has_arrays |= values.back()->type == Type::kArray;
  }
  // Arrays describe themselves as they come; those among other values show then.
  if (has_arrays) return {};
  HEADRACE_ASSIGN(out.field, scalar_field(entry.name, values));
  return {};
}

void PickleData::add_scalar(uint32_t field, const PickleNode& node) {
  const Field& known = part_.head().schema[field];
  if (node.type == Type::kNone) return;
  if (known.storage == Storage::kExtent)
    part_.add_extent(field, place(as_bytes(node.text), node.encoded));
  else if (known.kind == Kind::kInt)
    part_.add_int(field, node.integer);
  else if (known.kind == Kind::kFloat)
    part_.add_float(field,
                    node.type == Type::kFloat ? node.number : static_cast<double>(node.integer));
  else
    part_.add_bytes(field, as_bytes(node.text));
}

// Without axes: a number of NumPy's.
Status PickleData::add_number(const std::string& name, const PickleArray& array) {
  const std::optional<DType> dtype = array.header.type.dtype();
  if (!dtype)
    return unsupported(
        fmt::format("'{}' holds a '{}', which is not read", name, array.header.type.descr));
  std::vector<std::byte> data(array.data.begin(), array.data.end());
  HEADRACE_TRY(normalise_npy(array.header, data));
  const std::optional<NpzNumber> number = number_at(data, *dtype, 0);
  if (!number) return unsupported(fmt::format("'{}' holds an integer beyond 63 bits", name));
  add_number_to(part_, part_.field(number_field(name, *dtype)), *number);
  return {};
}

Status PickleData::add_array(const std::string& name, const PickleNode& node) {
  HEADRACE_ASSIGN(const PickleArray array, pickle_array(pickle_, node));
  if (array.header.shape.empty()) return add_number(name, array);
  HEADRACE_ASSIGN(const uint32_t field, array_field(name, array.header));
  part_.add_extent(field, place(array.data, array.encoded));
  return {};
}

Status PickleData::add_cell(const Column& column, uint64_t row) {
  const NpyHeader& header = column.array.header;
  switch (column.from) {
    case Column::From::kNumbers:
      add_number_to(part_, column.field, *number_at(column.numbers, *header.type.dtype(), row));
      return {};
    case Column::From::kTexts: {
      const uint64_t bytes = header.type.item_bytes;
      HEADRACE_ASSIGN(const std::string text,
                      npy_text(column.array.data.subspan(row * bytes, bytes), header.type.kind));
      part_.add_bytes(column.field, as_bytes(text));
      return {};
    }
    case Column::From::kArrayRows: {
      PartValue value = column.place;
      const uint64_t bytes = header.row_bytes();
      if (value.encoding == 0) {
        value.offset += row * bytes;
        value.stored = bytes;
      } else {
        value.begin = row * bytes;
        value.length = bytes;
      }
      part_.add_extent(column.field, value);
      return {};
    }
    case Column::From::kList:
      break;
  }
  const PickleNode& node = item(*column.value, row);
  if (node.type == Type::kArray) return add_array(column.name, node);
  if (part_.head().schema.size() <= column.field ||
      part_.head().schema[column.field].name != column.name) {
    if (node.type == Type::kNone) return {};
    return unsupported(fmt::format("'{}' holds arrays and other values", column.name));
  }
  add_scalar(column.field, node);
  return {};
}

Status PickleData::add_rows(uint64_t rows, std::string_view prefix) {
  HEADRACE_ASSIGN(const std::vector<Entry> all, entries());
  std::vector<Column> columns;
  std::string left_out;
  const PickleNode* keys = nullptr;
  for (const Entry& entry : all) {
    const bool is_list = entry.value->type == Type::kList || entry.value->type == Type::kTuple;
    if (entry.name == kPickleKeys && is_list) {
      keys = entry.value;
      continue;
    }
    Column column{.name = entry.name, .value = entry.value};
    Status status;
    if (entry.value->type == Type::kArray) {
      status = open_array(entry, column);
    } else if (is_list) {
      status = open_list(entry, column);
    } else {
      left_out += (left_out.empty() ? "'" : ", '") + entry.name + '\'';
      continue;
    }
    if (!status.ok()) return status.with(fmt::format("'{}'", entry.name));
    columns.push_back(std::move(column));
  }
  if (!left_out.empty())
    part_.head().notices.push_back(
        fmt::format("{} belong to the file and not to a row: left out", left_out));
  for (uint64_t row = 0; row < rows; ++row) {
    for (const Column& column : columns) HEADRACE_TRY(add_cell(column, row));
    HEADRACE_ASSIGN(const std::string key, key_of(keys, row, prefix));
    part_.end_sample(key);
  }
  return {};
}

Result<std::string> PickleData::key_of(const PickleNode* keys, uint64_t row,
                                       std::string_view prefix) const {
  if (keys == nullptr) return fmt::format("{}{:08}", prefix, row);
  const PickleNode& key = item(*keys, row);
  if (key.type != Type::kText)
    return unsupported(fmt::format("'{}' holds something else than texts", kPickleKeys));
  return std::string(key.text);
}

Status PickleData::add_value(const Entry& entry) {
  const PickleNode& value = *entry.value;
  if (value.type == Type::kArray) return add_array(entry.name, value);
  std::vector<const PickleNode*> values{&value};
  if (value.type == Type::kList || value.type == Type::kTuple) {
    values.clear();
    for (const uint32_t n : pickle_.items[value.items]) values.push_back(&pickle_.nodes[n]);
    // As many values of the field, unless they are arrays.
    if (!values.empty() && values.front()->type == Type::kArray) {
      for (const PickleNode* one : values) HEADRACE_TRY(add_array(entry.name, *one));
      return {};
    }
  }
  HEADRACE_ASSIGN(const uint32_t field, scalar_field(entry.name, values));
  for (const PickleNode* one : values) add_scalar(field, *one);
  return {};
}

Status PickleData::add_whole(std::string_view key) {
  HEADRACE_ASSIGN(const std::vector<Entry> all, entries());
  uint64_t values = 0;
  for (const Entry& entry : all) {
    const bool is_list = entry.value->type == Type::kList || entry.value->type == Type::kTuple;
    values += is_list ? pickle_.items[entry.value->items].size() : 1;
    if (values > bytes_.size()) return corrupt("the same list under many keys");
    HEADRACE_TRY(add_value(entry));
  }
  part_.end_sample(key);
  return {};
}

}  // namespace headrace
