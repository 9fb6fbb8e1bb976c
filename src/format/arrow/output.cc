// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/output.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "base/utf8.h"
#include "format/inline_number.h"

namespace headrace {
namespace {

constexpr uint64_t kAlign = 64;
constexpr uint16_t kNanF16 = 0x7e00;

bool is_text(Kind kind) {
  return kind == Kind::kText || kind == Kind::kJson;
}

bool is_array(const Field& field) {
  return (field.kind == Kind::kArray || field.kind == Kind::kTokens) && field.dtype;
}

bool is_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

// Arrow has no bf16: a number becomes a float, elements the 16 bits that they are.
DType stored_as(const Field& field) {
  if (is_array(field)) return field.dtype == DType::kBF16 ? DType::kU16 : *field.dtype;
  if (field.kind == Kind::kFloat) {
    if (field.dtype && is_float(*field.dtype)) return *field.dtype;
    return field.dtype == DType::kBF16 ? DType::kF32 : DType::kF64;
  }
  const bool is_int = field.dtype && !is_float(*field.dtype) && field.dtype != DType::kBF16;
  return is_int ? *field.dtype : DType::kI64;
}

// Elements in all axes from `first` on; 0 where they cannot be one list of fixed size.
uint64_t product(const std::vector<int64_t>& shape, size_t first) {
  int64_t n = 1;
  for (size_t i = first; i < shape.size(); ++i)
    if (shape[i] <= 0 || __builtin_mul_overflow(n, shape[i], &n) || n > INT32_MAX) return 0;
  return static_cast<uint64_t>(n);
}

bool fits(int64_t number, DType dtype) {
  if (dtype == DType::kI64) return true;
  if (dtype == DType::kU64) return number >= 0;
  const auto bits = static_cast<int>(size_of(dtype)) * 8;
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32;
  const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return number <= most && number >= (is_signed ? -most - 1 : 0);
}

template <typename T>
Bytes bytes_of(const std::vector<T>& items) {
  return std::as_bytes(std::span(items));
}

}  // namespace

void ArrowBatchOutput::add_node(uint64_t length, uint64_t nulls) {
  batch.nodes.push_back({static_cast<int64_t>(length), static_cast<int64_t>(nulls)});
}

void ArrowBatchOutput::add_buffer(Bytes bytes) {
  batch.buffers.push_back({static_cast<int64_t>(body.size()), static_cast<int64_t>(bytes.size())});
  body.insert(body.end(), bytes.begin(), bytes.end());
  body.resize((body.size() + kAlign - 1) / kAlign * kAlign);
}

ArrowOutput::ArrowOutput(const Field& field) : field_(field), stored_(stored_as(field)) {
  if (field.kind == Kind::kInt || field.kind == Kind::kFloat) form_ = ArrowForm::kNumber;
  if (!is_array(field)) return;
  form_ = ArrowForm::kVarying;
  const bool is_plain = field.kind == Kind::kTokens || field.shape.empty();
  const bool varies = !is_plain && field.shape.front() == kVaries;
  const uint64_t items = is_plain ? 0 : product(field.shape, varies ? 1 : 0);
  if (items > 0) width_ = items;
  if (items > 0 && !varies) form_ = ArrowForm::kFixed;
  if (form_ == ArrowForm::kFixed || width_ > 1)
    axes_.assign(field.shape.begin() + (varies ? 1 : 0), field.shape.end());
}

void ArrowOutput::describe(ArrowFileSchema& schema) const {
  ArrowMetadata metadata = {{std::string(kArrowKindMeta), std::string(kind_name(field_.kind))}};
  if (form_ != ArrowForm::kBlob)
    metadata.emplace_back(kArrowDTypeMeta, field_.dtype ? dtype_name(*field_.dtype) : "");
  if (field_.kind == Kind::kArray)
    metadata.emplace_back(kArrowShapeMeta, arrow_shape_text(field_.shape));
  if (field_.many) metadata.emplace_back(kArrowManyMeta, "1");
  const auto first = static_cast<uint32_t>(schema.fields.size());
  schema.columns.push_back(first);
  // Each level is the one child of the level before.
  const auto push = [&](ArrowType type) {
    const auto number = static_cast<uint32_t>(schema.fields.size());
    if (number > first) schema.fields.back().children = {number};
    schema.fields.push_back({.name = number == first ? field_.name : "item", .type = type});
  };
  if (field_.many) push(ArrowType::kList);
  if (form_ == ArrowForm::kVarying) push(ArrowType::kList);
  for (const int64_t extent : axes_) {
    push(ArrowType::kFixedSizeList);
    schema.fields.back().width = extent;
  }
  if (form_ == ArrowForm::kBlob) {
    push(is_text(field_.kind) ? ArrowType::kUtf8 : ArrowType::kBinary);
  } else {
    push(is_float(stored_) ? ArrowType::kFloat : ArrowType::kInt);
    schema.fields.back().dtype = stored_;
  }
  schema.fields[first].metadata = std::move(metadata);
}

Status ArrowOutput::add_row(std::span<const RecordValue> values) {
  if (values.size() > 1 && !field_.many)
    return internal(fmt::format("field '{}' has several values and was not said to", field_.name));
  if (rows_ % 8 == 0) valid_.push_back(std::byte{0});
  if (values.empty())
    ++nulls_;
  else
    valid_.back() |= std::byte{1} << (rows_ % 8);
  ++rows_;
  for (const RecordValue& value : values) HEADRACE_TRY(add(value));
  if (field_.many)
    lists_.push_back(static_cast<int32_t>(values_));
  else if (values.empty())
    add_nothing();
  return {};
}

Status ArrowOutput::add(const RecordValue& value) {
  ++values_;
  if (form_ == ArrowForm::kNumber) return add_number(value);
  if (form_ != ArrowForm::kBlob) return add_array(value);
  if (is_text(field_.kind)) {
    const size_t good = valid_utf8_prefix(value.bytes);
    if (good < value.bytes.size())
      return unsupported(
          fmt::format("field '{}' is no UTF-8 from byte {} on, and an Arrow string must be: drop "
                      "the field, or repair the text",
                      field_.name, good));
  }
  put(value.bytes);
  offsets_.push_back(static_cast<int32_t>(data_.size()));
  return {};
}

// A null has its room where there are no offsets.
void ArrowOutput::add_nothing() {
  ++values_;
  if (form_ == ArrowForm::kNumber || form_ == ArrowForm::kFixed)
    data_.resize(data_.size() + width_ * size_of(stored_));
  else
    offsets_.push_back(offsets_.back());
}

Status ArrowOutput::add_number(const RecordValue& value) {
  std::array<std::byte, 8> raw{};
  if (field_.kind == Kind::kInt) {
    HEADRACE_ASSIGN(const int64_t number, int_of(value));
    if (!fits(number, stored_))
      return unsupported(
          fmt::format("field '{}' is {} and holds {}", field_.name, dtype_name(stored_), number));
    store_le(MutableBytes(raw), number);
  } else {
    HEADRACE_ASSIGN(const double number, float_of(value));
    const auto narrow = static_cast<float>(number);
    if (stored_ == DType::kF64)
      store_le(MutableBytes(raw), number);
    else if (stored_ == DType::kF32)
      store_le(MutableBytes(raw), narrow);
    else
      store_le(MutableBytes(raw), std::isnan(narrow) ? kNanF16 : to_f16(narrow));
  }
  put(Bytes(raw).first(size_of(stored_)));
  return {};
}

Status ArrowOutput::add_array(const RecordValue& value) {
  const uint64_t item = width_ * size_of(stored_);
  const bool is_whole =
      form_ == ArrowForm::kFixed ? value.bytes.size() == item : value.bytes.size() % item == 0;
  if (!is_whole)
    return corrupt(fmt::format("field '{}' is {} and a value has {} bytes", field_.name,
                               field_text(field_), value.bytes.size()));
  put(value.bytes);
  if (form_ == ArrowForm::kVarying) offsets_.push_back(static_cast<int32_t>(data_.size() / item));
  return {};
}

void ArrowOutput::take(ArrowBatchOutput& out) {
  const Bytes valid = nulls_ > 0 ? Bytes(valid_) : Bytes();
  if (field_.many) {
    out.add_node(rows_, nulls_);
    out.add_buffer(valid);
    out.add_buffer(bytes_of(lists_));
    out.add_node(values_, 0);
    out.add_buffer({});
  } else {
    out.add_node(rows_, nulls_);
    out.add_buffer(valid);
  }
  take_leaf(out);
  valid_.clear();
  lists_.assign(1, 0);
  offsets_.assign(1, 0);
  data_.clear();
  rows_ = nulls_ = values_ = 0;
}

// What follows the nulls of the leaf itself.
void ArrowOutput::take_leaf(ArrowBatchOutput& out) {
  if (form_ == ArrowForm::kBlob || form_ == ArrowForm::kVarying) out.add_buffer(bytes_of(offsets_));
  const uint64_t numbers = data_.size() / size_of(stored_);
  const auto add_level = [&out](uint64_t items) {
    out.add_node(items, 0);
    out.add_buffer({});
  };
  // The lists of each axis, outermost first; of a kFixed the first are the values themselves.
  uint64_t items = numbers / width_;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (i > 0 || form_ == ArrowForm::kVarying) add_level(items);
    items *= static_cast<uint64_t>(axes_[i]);
  }
  if (form_ == ArrowForm::kVarying || form_ == ArrowForm::kFixed) add_level(numbers);
  out.add_buffer(data_);
}

}  // namespace headrace
