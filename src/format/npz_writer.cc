// SPDX-License-Identifier: Apache-2.0
//
// Samples of any shape in one .npz: members `<key>/<field>.npy` for arrays and numbers,
// `<key>/<field>` for everything else, whose bytes np.load() gives as they are.  Their kind
// goes into an extra field of the member.  Stored, with one time stamp for all.

#include "format/npz_writer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/half.h"
#include "base/npy.h"
#include "format/inline_number.h"
#include "format/npz_names.h"
#include "format/zip_writer.h"

namespace headrace {
namespace {

bool is_number(Kind kind) {
  return kind == Kind::kInt || kind == Kind::kFloat;
}

bool is_typed_array(const Field& field) {
  return (field.kind == Kind::kArray || field.kind == Kind::kTokens) && field.dtype.has_value();
}

template <typename T>
Status put_int(ByteVector& out, int64_t v) {
  if (!std::in_range<T>(v)) return corrupt(fmt::format("{} does not fit the type of its field", v));
  put_le(out, static_cast<T>(v));
  return {};
}

Status put_integer(ByteVector& out, DType dtype, int64_t v) {
  switch (dtype) {
    case DType::kU8:
      return put_int<uint8_t>(out, v);
    case DType::kI8:
      return put_int<int8_t>(out, v);
    case DType::kU16:
      return put_int<uint16_t>(out, v);
    case DType::kI16:
      return put_int<int16_t>(out, v);
    case DType::kU32:
      return put_int<uint32_t>(out, v);
    case DType::kI32:
      return put_int<int32_t>(out, v);
    case DType::kU64:
      return put_int<uint64_t>(out, v);
    default:
      return put_int<int64_t>(out, v);
  }
}

void put_float(ByteVector& out, DType dtype, double v) {
  if (dtype == DType::kF16)
    put_le(out, std::isnan(v) ? uint16_t{0x7e00} : to_f16(static_cast<float>(v)));
  else if (dtype == DType::kF32)
    put_le(out, static_cast<float>(v));
  else
    put_le(out, v);
}

// The type a number is written as: the one its source had.
DType type_of_number(const Field& field) {
  const bool is_float = field.kind == Kind::kFloat;
  const bool fits =
      field.dtype && *field.dtype != DType::kBF16 && (*field.dtype >= DType::kF16) == is_float;
  if (fits) return *field.dtype;
  return is_float ? DType::kF64 : DType::kI64;
}

// The extent that varies is told by the length.
Result<std::vector<uint64_t>> shape_of(const Field& field, uint64_t bytes) {
  const uint64_t item = size_of(*field.dtype);
  std::vector<uint64_t> shape;
  uint64_t known = 1;
  size_t varies = ~size_t{0};
  for (const int64_t n : field.shape) {
    if (n == kVaries) varies = shape.size();
    shape.push_back(n == kVaries ? 1 : static_cast<uint64_t>(n));
    known *= shape.back();
  }
  if (field.kind == Kind::kTokens && field.shape.empty()) {
    shape = {1};
    varies = 0;
  }
  if (varies < shape.size() && known > 0) shape[varies] = bytes / (known * item);
  const std::optional<uint64_t> items = count_items(shape, item);
  if (!items || *items * item != bytes)
    return corrupt(fmt::format("{} bytes are no {}", bytes, field_text(field)));
  return shape;
}

class NpzWriter final : public Writer {
 public:
  explicit NpzWriter(ShardOutput out) : zip_(std::move(out.file)) {
    for (Field& field : out.schema) fields_.emplace(field.name, std::move(field));
  }

  Status append(const Record& record) override {
    Status status = add(record);
    return status.ok() ? status : status.with(record.key);
  }
  Status finish() override { return zip_.finish(); }

 private:
  Status add(const Record& record) {
    if (!keys_.emplace(record.key).second)
      return unsupported("the key comes twice; an .npz holds a name once");
    const std::string prefix = std::string(record.key) + '/';
    if (record.values.empty()) return zip_.add(prefix, Kind::kBytes, {});
    size_t number = 0;  // among the values of one field
    for (size_t i = 0; i < record.values.size(); ++i) {
      const RecordValue& value = record.values[i];
      number = i > 0 && record.values[i - 1].field == value.field ? number + 1 : 0;
      if (value.field.empty()) return unsupported("a field without a name");
      std::string name = prefix + npz_field_name(value.field);
      const auto known = fields_.find(std::string(value.field));
      Field field{.name = std::string(value.field), .kind = value.kind};
      if (known != fields_.end()) field = known->second;
      const bool several =
          field.many || number > 0 ||
          (i + 1 < record.values.size() && record.values[i + 1].field == value.field);
      if (several) name += fmt::format("[{}]", number);
      if (Status s = add_value(name, field, value); !s.ok())
        return s.with(fmt::format("field '{}'", value.field));
    }
    return {};
  }

  Status add_value(std::string& name, const Field& field, const RecordValue& value) {
    if (is_number(value.kind)) return add_number(name + ".npy", field, value);
    if (is_typed_array(field)) {
      HEADRACE_ASSIGN(const std::vector<uint64_t> shape, shape_of(field, value.bytes.size()));
      const std::string header = make_npy_header(*field.dtype, shape);
      const std::array<Bytes, 2> parts = {as_bytes(header), value.bytes};
      return zip_.add(name + ".npy", value.kind, parts);
    }
    if (value.kind == Kind::kNpy) {
      HEADRACE_TRY(parse_npy(value.bytes, value.bytes.size()).status());
      name += ".npy";
    }
    return zip_.add(name, value.kind, std::span(&value.bytes, 1));
  }

  Status add_number(const std::string& name, const Field& field, const RecordValue& value) {
    Field typed = field;
    typed.kind = value.kind;
    const DType dtype = type_of_number(typed);
    ByteVector data;
    if (value.kind == Kind::kFloat) {
      HEADRACE_ASSIGN(const double v, float_of(value));
      put_float(data, dtype, v);
    } else {
      HEADRACE_ASSIGN(const int64_t v, int_of(value));
      HEADRACE_TRY(put_integer(data, dtype, v));
    }
    const std::string header = make_npy_header(dtype, {});
    const std::array<Bytes, 2> parts = {as_bytes(header), Bytes(data)};
    return zip_.add(name, value.kind, parts);
  }

  ZipWriter zip_;
  std::unordered_map<std::string, Field> fields_;
  std::unordered_set<std::string> keys_;
};

}  // namespace

Status npz_can_hold(const Schema& schema) {
  for (const Field& field : schema)
    if (is_typed_array(field) && *field.dtype == DType::kBF16)
      return unsupported(
          fmt::format("field '{}' is an array of bf16, a type that NumPy does not have: leave it "
                      "out, or pack to another format",
                      field.name));
  return {};
}

Result<std::unique_ptr<Writer>> make_npz_writer(ShardOutput out) {
  return std::unique_ptr<Writer>(std::make_unique<NpzWriter>(std::move(out)));
}

}  // namespace headrace
