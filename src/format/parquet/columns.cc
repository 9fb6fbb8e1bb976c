// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/half.h"
#include "format/inline_number.h"
#include "format/parquet/types.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

// What a schema of ours points to.
struct SchemaMemory {
  std::string format, name, metadata;
  std::vector<ArrowOwned<ArrowSchema>> children;
  std::vector<ArrowSchema*> pointers;
};

struct ArrayMemory {
  std::vector<ByteVector> buffers;
  std::vector<const void*> addresses;
  std::vector<ArrowOwned<ArrowArray>> children;
  std::vector<ArrowArray*> pointers;
};

// Children that were moved out have released themselves already: the owners see that.
template <typename T, typename Memory>
void release(T* held) {
  delete static_cast<Memory*>(held->private_data);
  held->release = nullptr;
}

ArrowOwned<ArrowSchema> make_schema(std::string format, std::string_view name,
                                    std::string_view kind,
                                    std::vector<ArrowOwned<ArrowSchema>> children = {}) {
  auto memory = std::make_unique<SchemaMemory>();
  memory->format = std::move(format);
  memory->name = name;
  if (!kind.empty()) {
    const auto put = [&memory](std::string_view text) {
      const auto length = static_cast<int32_t>(text.size());
      memory->metadata.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
    };
    const int32_t pairs = 1;
    memory->metadata.append(reinterpret_cast<const char*>(&pairs), sizeof pairs);
    put(kArrowKind);
    put(kind);
  }
  memory->children = std::move(children);
  for (auto& child : memory->children) memory->pointers.push_back(&*child);
  ArrowOwned<ArrowSchema> out;
  *out.fill() = {.format = memory->format.c_str(),
                 .name = memory->name.c_str(),
                 .metadata = memory->metadata.empty() ? nullptr : memory->metadata.data(),
                 .flags = kArrowNullable,
                 .n_children = static_cast<int64_t>(memory->pointers.size()),
                 .children = memory->pointers.data(),
                 .dictionary = nullptr,
                 .release = release<ArrowSchema, SchemaMemory>,
                 .private_data = nullptr};
  out->private_data = memory.release();
  return out;
}

// The first buffer is the validity, empty where all values are there.
ArrowOwned<ArrowArray> make_array(int64_t length, int64_t nulls, std::vector<ByteVector> buffers,
                                  std::vector<ArrowOwned<ArrowArray>> children = {}) {
  auto memory = std::make_unique<ArrayMemory>();
  memory->buffers = std::move(buffers);
  for (size_t i = 0; i < memory->buffers.size(); ++i) {
    ByteVector& buffer = memory->buffers[i];
    if (i > 0 && buffer.empty()) buffer.resize(8);  // an address even where there is no value
    memory->addresses.push_back(buffer.empty() ? nullptr : buffer.data());
  }
  memory->children = std::move(children);
  for (auto& child : memory->children) memory->pointers.push_back(&*child);
  ArrowOwned<ArrowArray> out;
  *out.fill() = {.length = length,
                 .null_count = nulls,
                 .offset = 0,
                 .n_buffers = static_cast<int64_t>(memory->addresses.size()),
                 .n_children = static_cast<int64_t>(memory->pointers.size()),
                 .buffers = memory->addresses.data(),
                 .children = memory->pointers.data(),
                 .dictionary = nullptr,
                 .release = release<ArrowArray, ArrayMemory>,
                 .private_data = nullptr};
  out->private_data = memory.release();
  return out;
}

ByteVector bits_of(const std::vector<bool>& present) {
  ByteVector bits((present.size() + 7) / 8);
  for (size_t i = 0; i < present.size(); ++i)
    if (present[i]) bits[i / 8] |= std::byte{1} << (i % 8);
  return bits;
}

ByteVector raw_of(const std::vector<int32_t>& ends) {
  const auto raw = std::as_bytes(std::span(ends));
  return {raw.begin(), raw.end()};
}

char letter_of(DType dtype) {
  constexpr std::string_view kLetters = "CcSsIiLle?fg";  // in the order of DType
  return kLetters[static_cast<size_t>(dtype)];
}

Status cannot(const Field& field, std::string_view why) {
  return unsupported(
      fmt::format("a column cannot hold field '{}' ({}): {}", field.name, field_text(field), why));
}

Status check_array(const Field& field, const std::vector<int64_t>& shape) {
  if (!field.dtype) return cannot(field, "its type is not known");
  if (field.many) return cannot(field, "several arrays in a sample");
  if (shape.empty() ||
      std::any_of(shape.begin() + 1, shape.end(), [](int64_t n) { return n <= 0; }) ||
      (shape[0] != kVaries && shape[0] <= 0))
    return cannot(field, "only the first extent may vary, and none may be 0");
  return {};
}

}  // namespace

Result<ParquetColumnType> arrow_column_type(const Field& field) {
  if (field.name.empty()) return cannot(field, "it has no name");
  if (field.name == kArrowKey) return cannot(field, "the name is the key's; rename it");
  if (field.dtype == DType::kBF16) return cannot(field, "Arrow has no bfloat16");
  ParquetColumnType type;
  if (field.kind == Kind::kArray || field.kind == Kind::kTokens) {
    type.lists = field.kind == Kind::kTokens ? std::vector<int64_t>{kVaries} : field.shape;
    HEADRACE_TRY(check_array(field, type.lists));
    type.leaf = letter_of(*field.dtype);
    return type;
  }
  if (field.many) type.lists.push_back(kVaries);
  if (field.kind == Kind::kInt)
    type.leaf = letter_of(field.dtype.value_or(DType::kI64));
  else if (field.kind == Kind::kFloat)
    type.leaf = letter_of(field.dtype.value_or(DType::kF64));
  else
    type.leaf = field.kind == Kind::kText || field.kind == Kind::kJson ? "u" : "z";
  return type;
}

Result<ParquetColumn> ParquetColumn::make(const Field& field) {
  ParquetColumn column(field);
  HEADRACE_ASSIGN(column.type_, arrow_column_type(field));
  if (column.is_bytes()) return column;
  column.element_bytes_ = size_of(arrow_number(column.type_.leaf)->dtype);
  for (size_t i = 1; i < column.type_.lists.size(); ++i)
    column.element_bytes_ *= static_cast<size_t>(column.type_.lists[i]);
  return column;
}

Status ParquetColumn::add(std::span<const RecordValue> values) {
  if (values.empty()) return add_null(), Status();
  if (values.size() > 1 && !(is_list() && field_.many))
    return unsupported(fmt::format("the sample has {} values of field '{}', of which one was said",
                                   values.size(), field_.name));
  for (const RecordValue& value : values) HEADRACE_TRY(add_value(value));
  if (field_.many) list_.push_back(list_.back() + static_cast<int32_t>(values.size()));
  present_.push_back(true);
  ++rows_;
  return {};
}

Status ParquetColumn::add_value(const RecordValue& value) {
  if (is_bytes()) return add_bytes(value.bytes);
  if (field_.kind == Kind::kInt) return add_int(value);
  return field_.kind == Kind::kFloat ? add_float(value) : add_array(value.bytes);
}

Status ParquetColumn::add_bytes(Bytes value) {
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  if (value.size() > kMost - std::min(kMost, values_.size()))
    return unsupported(fmt::format("field '{}': {} bytes; a column holds 2 GiB in a row group",
                                   field_.name, value.size()));
  values_.insert(values_.end(), value.begin(), value.end());
  offsets_.push_back(static_cast<int32_t>(values_.size()));
  return {};
}

Status ParquetColumn::add_array(Bytes value) {
  const bool varies = type_.lists[0] == kVaries;
  const size_t count = value.size() / element_bytes_;
  if (value.size() % element_bytes_ != 0 ||
      (!varies && count != static_cast<size_t>(type_.lists[0])))
    return corrupt(fmt::format("field '{}': {} bytes are no {}", field_.name, value.size(),
                               field_text(field_)));
  if (count > static_cast<size_t>(std::numeric_limits<int32_t>::max() - list_.back()))
    return unsupported(fmt::format("field '{}': too many elements for a row group", field_.name));
  values_.insert(values_.end(), value.begin(), value.end());
  if (varies) list_.push_back(list_.back() + static_cast<int32_t>(count));
  return {};
}

Status ParquetColumn::add_int(const RecordValue& value) {
  HEADRACE_ASSIGN(const int64_t number, int_of(value));
  const DType dtype = field_.dtype.value_or(DType::kI64);
  const bool is_signed =
      dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
  const auto bits = static_cast<int>(8 * size_of(dtype)) - (is_signed ? 1 : 0);
  const bool fits =
      bits >= 63 ? (is_signed || number >= 0)
                 : number < int64_t{1} << bits && number >= (is_signed ? -(int64_t{1} << bits) : 0);
  if (!fits)
    return corrupt(fmt::format("field '{}': {} is no {}", field_.name, number, dtype_name(dtype)));
  std::array<std::byte, 8> raw;
  store_le(MutableBytes(raw), number);
  values_.insert(values_.end(), raw.begin(), raw.begin() + static_cast<ptrdiff_t>(size_of(dtype)));
  return {};
}

Status ParquetColumn::add_float(const RecordValue& value) {
  HEADRACE_ASSIGN(const double number, float_of(value));
  std::array<std::byte, 8> raw;
  const DType dtype = field_.dtype.value_or(DType::kF64);
  if (dtype == DType::kF16)
    store_le(MutableBytes(raw),
             std::isnan(number) ? uint16_t{0x7e00} : to_f16(static_cast<float>(number)));
  else if (dtype == DType::kF32)
    store_le(MutableBytes(raw), static_cast<float>(number));
  else
    store_le(MutableBytes(raw), number);
  values_.insert(values_.end(), raw.begin(), raw.begin() + static_cast<ptrdiff_t>(size_of(dtype)));
  return {};
}

void ParquetColumn::add_null() {
  present_.push_back(false);
  ++rows_;
  ++nulls_;
  if (is_list() && type_.lists[0] == kVaries) {
    list_.push_back(list_.back());
  } else if (is_bytes()) {
    offsets_.push_back(offsets_.back());
  } else {
    const size_t steps = is_list() ? static_cast<size_t>(type_.lists[0]) : 1;
    values_.resize(values_.size() + steps * element_bytes_);
  }
}

ArrowOwned<ArrowSchema> ParquetColumn::schema() const {
  const std::string_view kind = kind_name(field_.kind);
  const bool list = is_list();
  auto made = make_schema(type_.leaf, list ? "element" : field_.name, list ? "" : kind);
  for (size_t i = type_.lists.size(); i-- > 0;) {
    std::vector<ArrowOwned<ArrowSchema>> inside;
    inside.push_back(std::move(made));
    const int64_t size = type_.lists[i];
    made = make_schema(size == kVaries ? "+l" : fmt::format("+w:{}", size),
                       i == 0 ? field_.name : "element", i == 0 ? kind : "", std::move(inside));
  }
  return made;
}

// The array of `length` entries below `level` lists.
ArrowOwned<ArrowArray> ParquetColumn::elements(size_t level, int64_t length) {
  std::vector<ByteVector> buffers;
  const bool outermost = level == 0;
  buffers.push_back(outermost && nulls_ > 0 ? bits_of(present_) : ByteVector());
  const int64_t nulls = outermost ? nulls_ : 0;
  if (level == type_.lists.size()) {
    if (is_bytes()) buffers.push_back(raw_of(offsets_));
    buffers.push_back(std::move(values_));
    return make_array(length, nulls, std::move(buffers));
  }
  const int64_t size = type_.lists[level];
  if (size == kVaries) buffers.push_back(raw_of(list_));
  std::vector<ArrowOwned<ArrowArray>> inside;
  inside.push_back(elements(level + 1, size == kVaries ? list_.back() : length * size));
  return make_array(length, nulls, std::move(buffers), std::move(inside));
}

ArrowOwned<ArrowArray> ParquetColumn::take() {
  ArrowOwned<ArrowArray> array = elements(0, rows_);
  rows_ = nulls_ = 0;
  present_.clear();
  list_.assign(1, 0);
  offsets_.assign(1, 0);
  values_.clear();
  return array;
}

ArrowOwned<ArrowSchema> arrow_struct(std::vector<ArrowOwned<ArrowSchema>> columns) {
  return make_schema("+s", "", "", std::move(columns));
}

ArrowOwned<ArrowArray> arrow_struct(std::vector<ArrowOwned<ArrowArray>> columns, int64_t rows) {
  std::vector<ByteVector> validity(1);
  return make_array(rows, 0, std::move(validity), std::move(columns));
}

}  // namespace headrace
