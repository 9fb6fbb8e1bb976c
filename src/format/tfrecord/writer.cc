// SPDX-License-Identifier: Apache-2.0
//
// Samples as tf.train.Example, one record each: numbers become int64 and float (32 bits, which is
// all that an Example has), arrays of these types with one axis their lists, everything else bytes;
// the key is the feature `__key__`.

#include <fmt/format.h>

#include <array>
#include <map>
#include <unordered_set>

#include "format/inline_number.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/protobuf.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxExample = uint64_t{1} << 31;  // what protocol buffers can hold

FeatureType type_of(Kind kind) {
  if (kind == Kind::kInt) return FeatureType::kInt64;
  return kind == Kind::kFloat ? FeatureType::kFloat : FeatureType::kBytes;
}

// An array that is a list of the format's own: its type and length come back.
bool is_list(const Field& field) {
  return field.kind == Kind::kArray && !field.many && field.shape.size() == 1 &&
         (field.dtype == DType::kI64 || field.dtype == DType::kF32);
}

class TfrecordWriter final : public Writer {
 public:
  explicit TfrecordWriter(ShardOutput out) : sink_(std::move(out.file)) {
    for (const Field& field : out.schema)
      if (is_list(field)) lists_.emplace(field.name, *field.dtype);
  }

  Status append(const Record& record) override {
    features_.clear();
    names_.clear();
    put_feature(kExampleKey, FeatureType::kBytes, one_value(as_bytes(record.key)));
    for (size_t i = 0; i < record.values.size();) {
      size_t end = i + 1;  // several values of one field follow one another
      while (end < record.values.size() && record.values[end].field == record.values[i].field)
        ++end;
      if (Status s = add(record.values.subspan(i, end - i)); !s.ok()) return s.with(record.key);
      i = end;
    }
    if (features_.size() > kMaxExample)
      return unsupported(fmt::format("the sample has {} bytes; a tf.train.Example holds 2 GiB",
                                     features_.size()))
          .with(record.key);
    example_.clear();
    put_wire_bytes(example_, 1, features_);
    return put_record(example_);
  }

  Status finish() override { return sink_->close(); }

 private:
  using ByteVector = std::vector<std::byte>;

  Status add(std::span<const RecordValue> values) {
    const std::string_view name = values.front().field;
    if (name.empty() || name == kExampleKey || !names_.insert(std::string(name)).second)
      return unsupported(fmt::format("a tf.train.Example cannot hold a field named '{}' {}", name,
                                     name.empty()          ? "(no name)"
                                     : name == kExampleKey ? "(it is the key's)"
                                                           : "(it comes twice)"));
    if (const auto list = lists_.find(name); list != lists_.end())
      return add_list(name, list->second, values.front().bytes), Status();
    const FeatureType type = type_of(values.front().kind);
    ByteVector list;
    ByteVector numbers;
    for (const RecordValue& value : values) {
      if (type == FeatureType::kBytes) {
        put_wire_bytes(list, 1, value.bytes);
      } else if (type == FeatureType::kInt64) {
        HEADRACE_ASSIGN(const int64_t number, int_of(value));
        put_wire_varint(numbers, static_cast<uint64_t>(number));
      } else {
        HEADRACE_ASSIGN(const float number, float32_of(value));
        std::array<std::byte, 4> raw;
        store_le(MutableBytes(raw), number);
        numbers.insert(numbers.end(), raw.begin(), raw.end());
      }
    }
    if (type != FeatureType::kBytes) put_wire_bytes(list, 1, numbers);
    put_feature(name, type, list);
    return {};
  }

  void add_list(std::string_view name, DType dtype, Bytes array) {
    ByteVector numbers;
    if (dtype == DType::kF32)
      numbers.assign(array.begin(), array.end());
    else
      for (size_t at = 0; at + 8 <= array.size(); at += 8)
        put_wire_varint(numbers, load_le<uint64_t>(array.subspan(at)));
    ByteVector list;
    put_wire_bytes(list, 1, numbers);
    put_feature(name, dtype == DType::kF32 ? FeatureType::kFloat : FeatureType::kInt64, list);
  }

  static ByteVector one_value(Bytes value) {
    ByteVector list;
    put_wire_bytes(list, 1, value);
    return list;
  }

  void put_feature(std::string_view name, FeatureType type, Bytes list) {
    ByteVector feature;
    put_wire_bytes(feature, static_cast<uint32_t>(type), list);
    ByteVector entry;
    put_wire_bytes(entry, 1, as_bytes(name));
    put_wire_bytes(entry, 2, feature);
    put_wire_bytes(features_, 1, entry);
  }

  Status put_record(Bytes data) {
    std::array<std::byte, kTfrecordHead> head;
    store_le(MutableBytes(head), uint64_t{data.size()});
    store_le(MutableBytes(head).subspan(8), masked_crc32c(Bytes(head).first(8)));
    std::array<std::byte, kTfrecordTail> tail;
    store_le(MutableBytes(tail), masked_crc32c(data));
    HEADRACE_TRY(sink_->append(head));
    HEADRACE_TRY(sink_->append(data));
    return sink_->append(tail);
  }

  std::unique_ptr<Sink> sink_;
  std::map<std::string, DType, std::less<>> lists_;
  ByteVector features_, example_;  // of the record at hand
  std::unordered_set<std::string> names_;
};

}  // namespace

std::unique_ptr<Writer> make_tfrecord_writer(ShardOutput out) {
  return std::make_unique<TfrecordWriter>(std::move(out));
}

}  // namespace headrace
