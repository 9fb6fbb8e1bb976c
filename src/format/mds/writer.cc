// SPDX-License-Identifier: Apache-2.0
//
// Samples as MDS: the fields are the columns, in the order of their names, and so is the key.
// Every sample has every column: a field that a sample lacks cannot be written, nor several
// values of one, but for pictures.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/half.h"
#include "base/npy.h"
#include "format/inline_number.h"
#include "format/mds/shard.h"

namespace headrace {
namespace {

using ByteVector = std::vector<std::byte>;

template <typename T>
void put(ByteVector& out, T value) {
  out.resize(out.size() + sizeof value);
  store_le(MutableBytes(out).last(sizeof value), value);
}

std::string_view name_of(DType dtype) {
  constexpr std::string_view kNames[kDTypes] = {"uint8",   "int8",  "uint16",  "int16",
                                                "uint32",  "int32", "uint64",  "int64",
                                                "float16", "",      "float32", "float64"};
  return kNames[static_cast<size_t>(dtype)];
}

Status cannot(const Field& field, std::string_view why) {
  return unsupported(
      fmt::format("MDS cannot hold field '{}': {}; leave it out, or write tar", field.name, why));
}

Result<std::string> encoding_of_array(const Field& field) {
  if (!field.dtype || name_of(*field.dtype).empty())
    return cannot(field, fmt::format("arrays of {} are not in it",
                                     field.dtype ? dtype_name(*field.dtype) : "no type"));
  std::string encoding = fmt::format("ndarray:{}", name_of(*field.dtype));
  const bool fixed = field.kind == Kind::kArray && !field.shape.empty() &&
                     std::all_of(field.shape.begin(), field.shape.end(),
                                 [](int64_t extent) { return extent > 0; });
  if (!fixed) return encoding;
  for (size_t i = 0; i < field.shape.size(); ++i)
    encoding += fmt::format("{}{}", i == 0 ? ":" : ",", field.shape[i]);
  return encoding;
}

Result<std::string> encoding_of(const Field& field) {
  if (field.name == kMdsKey) return cannot(field, "that name is the key's");
  if (field.many) {
    if (field.kind == Kind::kJpeg) return std::string("list[jpeg]");
    if (field.kind == Kind::kPng) return std::string("list[png]");
    return cannot(field, "some sample has several values of it");
  }
  switch (field.kind) {
    case Kind::kJpeg:
      return std::string("jpeg");
    case Kind::kPng:
      return std::string("png");
    case Kind::kJson:
      return std::string("json");
    case Kind::kText:
      return std::string("str");
    case Kind::kInt:
      return std::string(field.dtype ? name_of(*field.dtype) : std::string_view("int"));
    case Kind::kFloat:
      if (field.dtype == DType::kBF16) return std::string("float32");  // which holds all of bf16
      return std::string(field.dtype ? name_of(*field.dtype) : std::string_view("float64"));
    case Kind::kNpy:
      return std::string("ndarray");
    case Kind::kArray:
    case Kind::kTokens:
      return encoding_of_array(field);
    case Kind::kWebp:
    case Kind::kBytes:
      break;
  }
  return std::string("bytes");
}

// A column on its way out.
struct Output {
  Field field;
  MdsColumn column;
  bool is_fixed = false;
  bool is_key = false;
};

Result<std::vector<Output>> outputs_of(const Schema& schema) {
  std::vector<Output> out;
  out.push_back({.column = {std::string(kMdsKey), "str"}, .is_key = true});
  for (const Field& field : schema) {
    HEADRACE_ASSIGN(std::string encoding, encoding_of(field));
    out.push_back({.field = field, .column = {field.name, std::move(encoding)}});
  }
  std::sort(out.begin(), out.end(),
            [](const Output& a, const Output& b) { return a.column.name < b.column.name; });
  for (Output& output : out) {
    HEADRACE_ASSIGN(const StoredColumn column, read_mds_column(output.column));
    output.is_fixed = column.fixed.has_value();
  }
  return out;
}

Status put_int(DType dtype, int64_t value, ByteVector& out) {
  const uint64_t bytes = size_of(dtype);
  const bool is_unsigned =
      dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64;
  const int bits = static_cast<int>(8 * bytes) - (is_unsigned ? 0 : 1);
  const int64_t most = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  const int64_t least = is_unsigned ? 0 : -most - 1;
  if (value < least || value > most)
    return corrupt(fmt::format("{} does not fit into {}", value, name_of(dtype)));
  const size_t at = out.size();
  out.resize(at + bytes);
  std::memcpy(out.data() + at, &value, bytes);  // little-endian: the low bytes first
  return {};
}

void put_float(DType dtype, double value, ByteVector& out) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kF64)
    put(out, value);
  else if (dtype == DType::kF16)
    put(out, std::isnan(narrow) ? uint16_t{0x7e00} : to_f16(narrow));
  else
    put(out, narrow);
}

// | axes << 2 | width | extents |
void put_shape(std::span<const uint64_t> shape, ByteVector& out) {
  const uint64_t most = shape.empty() ? 0 : *std::max_element(shape.begin(), shape.end());
  const unsigned width = most < 0x100 ? 0 : most < 0x10000 ? 1 : most <= 0xffffffff ? 2 : 3;
  out.push_back(static_cast<std::byte>(shape.size() << 2 | width));
  for (const uint64_t extent : shape)
    for (unsigned b = 0; b < 1u << width; ++b)
      out.push_back(static_cast<std::byte>(extent >> (8 * b)));
}

void put_bytes(Bytes bytes, ByteVector& out) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// The length of the value tells the extent that varies.
Status put_varying_array(const Field& field, Bytes value, ByteVector& out) {
  std::vector<uint64_t> shape;
  uint64_t row = size_of(*field.dtype);
  for (const int64_t extent : field.shape)
    if (extent != kVaries) row *= static_cast<uint64_t>(extent);
  if (row == 0 || value.size() % row != 0)
    return corrupt(fmt::format("{} bytes are no array of {}", value.size(), field_text(field)));
  for (const int64_t extent : field.shape)
    shape.push_back(extent == kVaries ? value.size() / row : static_cast<uint64_t>(extent));
  if (field.shape.empty()) shape.push_back(value.size() / row);
  put_shape(shape, out);
  put_bytes(value, out);
  return {};
}

class MdsWriter final : public Writer {
 public:
  MdsWriter(std::unique_ptr<Sink> sink, std::vector<Output> outputs, uint64_t samples)
      : sink_(std::move(sink)), outputs_(std::move(outputs)), samples_(samples) {}

  // The offsets are known only in the end: zeros until then.
  Status start() {
    std::vector<MdsColumn> columns;
    for (const Output& output : outputs_) columns.push_back(output.column);
    ByteVector head;
    put(head, static_cast<uint32_t>(samples_));
    head.resize(4 * (samples_ + 2));
    put_bytes(as_bytes('{' + mds_config(columns) + '}'), head);
    at_ = head.size();
    return sink_->append(head);
  }

  Status append(const Record& record) override {
    if (offsets_.size() == samples_) return internal("more samples than were announced");
    sizes_.clear();
    data_.clear();
    size_t used = 0;
    for (const Output& output : outputs_)
      if (Status s = add(output, record, used); !s.ok()) return s.with(record.key);
    if (used != record.values.size())
      return internal("a value of a field that was not announced").with(record.key);
    offsets_.push_back(static_cast<uint32_t>(at_));
    at_ += sizes_.size() + data_.size();
    if (at_ > UINT32_MAX)
      return unsupported("an MDS shard holds 4 GiB: write more shards").with(record.key);
    HEADRACE_TRY(sink_->append(sizes_));
    return sink_->append(data_);
  }

  Status finish() override {
    if (offsets_.size() != samples_) return internal("fewer samples than were announced");
    ByteVector table;
    for (const uint32_t offset : offsets_) put(table, offset);
    put(table, static_cast<uint32_t>(at_));
    HEADRACE_TRY(sink_->rewrite(4, table));
    return sink_->close();
  }

 private:
  Status add(const Output& output, const Record& record, size_t& used) {
    const size_t begin = data_.size();
    if (output.is_key) {
      put_bytes(as_bytes(record.key), data_);
    } else {
      std::vector<RecordValue> values;
      for (const RecordValue& value : record.values)
        if (value.field == output.field.name) values.push_back(value);
      used += values.size();
      if (values.size() != 1 && !output.field.many)
        return unsupported(fmt::format(
            "the sample has {} field '{}', and MDS wants exactly one value in every sample: leave "
            "the field out, or write tar",
            values.empty() ? "no" : "several values of", output.field.name));
      if (Status s = output.field.many ? put_list(values) : put_one(output.field, values[0]);
          !s.ok())
        return s.with(fmt::format("field '{}'", output.field.name));
    }
    if (data_.size() - begin > UINT32_MAX)
      return unsupported(fmt::format("field '{}' has 4 GiB or more", output.column.name));
    if (!output.is_fixed) put(sizes_, static_cast<uint32_t>(data_.size() - begin));
    return {};
  }

  Status put_one(const Field& field, const RecordValue& value) {
    switch (field.kind) {
      case Kind::kInt: {
        HEADRACE_ASSIGN(const int64_t number, int_of(value));
        return put_int(field.dtype.value_or(DType::kI64), number, data_);
      }
      case Kind::kFloat: {
        HEADRACE_ASSIGN(const double number, float_of(value));
        put_float(field.dtype.value_or(DType::kF64), number, data_);
        return {};
      }
      case Kind::kNpy:
        return put_npy(value.bytes);
      case Kind::kArray:
      case Kind::kTokens:
        return put_array(field, value.bytes);
      default:
        put_bytes(value.bytes, data_);
        return {};
    }
  }

  Status put_array(const Field& field, Bytes value) {
    HEADRACE_ASSIGN(const std::string encoding, encoding_of_array(field));
    HEADRACE_ASSIGN(const StoredColumn column, read_mds_column({field.name, encoding}));
    if (!column.fixed) return put_varying_array(field, value, data_);
    if (value.size() != *column.fixed)
      return corrupt(fmt::format("{} bytes are no array of {}", value.size(), field_text(field)));
    put_bytes(value, data_);
    return {};
  }

  Status put_npy(Bytes value) {
    HEADRACE_ASSIGN(const NpyHeader head, parse_npy(value, value.size()));
    const std::optional<DType> dtype = head.type.dtype();
    const bool is_held = dtype && head.type.kind != 'b';
    const unsigned type = is_held ? mds_type_number(npy_descr(*dtype)) : 0;
    if (type == 0 || head.shape.empty() || head.shape.size() > 63)
      return unsupported(fmt::format("MDS has no arrays of type '{}' with {} axes", head.type.descr,
                                     head.shape.size()));
    data_.push_back(static_cast<std::byte>(type));
    put_shape(head.shape, data_);
    const size_t at = data_.size();
    put_bytes(value.subspan(head.data), data_);
    HEADRACE_TRY(normalise_npy(head, MutableBytes(data_).subspan(at)));
    return {};
  }

  Status put_list(std::span<const RecordValue> values) {
    put(data_, uint32_t{0});
    put(data_, static_cast<uint32_t>(values.size()));
    for (const RecordValue& value : values) put(data_, static_cast<uint32_t>(value.bytes.size()));
    for (const RecordValue& value : values) put_bytes(value.bytes, data_);
    return {};
  }

  const std::unique_ptr<Sink> sink_;
  const std::vector<Output> outputs_;
  const uint64_t samples_;
  uint64_t at_ = 0;
  std::vector<uint32_t> offsets_;
  ByteVector sizes_, data_;  // of the sample at hand
};

}  // namespace

Result<std::unique_ptr<Writer>> make_mds_writer(ShardOutput out) {
  HEADRACE_ASSIGN(std::vector<Output> outputs, outputs_of(out.schema));
  if (out.samples >= UINT32_MAX / 4)
    return unsupported("an MDS shard holds less than 2^30 samples: write more shards");
  auto writer = std::make_unique<MdsWriter>(std::move(out.file), std::move(outputs), out.samples);
  HEADRACE_TRY(writer->start());
  return std::unique_ptr<Writer>(std::move(writer));
}

Status mds_can_hold(const Schema& schema) {
  return outputs_of(schema).status();
}

}  // namespace headrace
