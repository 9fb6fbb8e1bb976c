// SPDX-License-Identifier: Apache-2.0
//
// Samples as MXNet's records: one field of numbers, which is the label or the labels, and one
// other field, which is the payload.  Keys are not kept; ids count from 0.

#include <fmt/format.h>

#include <array>

#include "format/inline_number.h"
#include "format/recordio/frame.h"

namespace headrace {
namespace {

bool is_number(Kind kind) {
  return kind == Kind::kInt || kind == Kind::kFloat;
}

// The field of several labels in one value, as the reader gives them; null where a number is the
// label, beside which an array is a payload like any other.
const Field* label_list_of(const Schema& schema) {
  const Field* list = nullptr;
  for (const Field& field : schema) {
    if (is_number(field.kind)) return nullptr;
    if (list == nullptr && field.kind == Kind::kArray && field.storage == Storage::kExtent &&
        field.dtype == DType::kF32 && field.shape.size() == 1)
      list = &field;
  }
  return list;
}

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  out.resize(out.size() + sizeof value);
  store_le(MutableBytes(out).last(sizeof value), value);
}

class RecordioWriter final : public Writer {
 public:
  RecordioWriter(std::unique_ptr<Sink> sink, std::unique_ptr<Sink> index, std::string label_list)
      : sink_(std::move(sink)), index_(std::move(index)), label_list_(std::move(label_list)) {}

  Status append(const Record& record) override {
    if (Status s = collect(record); !s.ok()) return s.with(record.key);
    lines_ += fmt::format("{}\t{}\n", id_, at_);
    // One label stands in the header itself; of several, the header has how many.
    const bool one = labels_.size() == 1;
    data_.clear();
    put(data_, static_cast<uint32_t>(one ? 0 : labels_.size()));
    put(data_, one ? labels_.front() : 0.0f);
    put(data_, id_);
    put(data_, uint64_t{0});
    if (!one)
      for (const float label : labels_) put(data_, label);
    if (data_.size() + payload_.size() > kRecordioMaxLength)
      return unsupported(fmt::format("the sample has {} bytes; a record holds less than 512 MiB",
                                     payload_.size()))
          .with(record.key);
    data_.insert(data_.end(), payload_.begin(), payload_.end());
    ++id_;
    return put_record();
  }

  // The .idx first: where the .rec is there, it is complete.
  Status finish() override {
    if (index_ != nullptr) {
      HEADRACE_TRY(index_->append(as_bytes(lines_)));
      HEADRACE_TRY(index_->close());
    }
    return sink_->close();
  }

 private:
  Status collect(const Record& record) {
    std::string_view label_field, payload_field;
    bool has_payload = false;
    bool has_labels = false;
    labels_.clear();
    payload_ = {};
    for (const RecordValue& value : record.values) {
      if (!label_list_.empty() && value.field == label_list_) {
        for (uint64_t at = 0; at + 4 <= value.bytes.size(); at += 4)
          labels_.push_back(load_le<float>(value.bytes.subspan(at)));
        has_labels = true;
        continue;
      }
      if (!is_number(value.kind)) {
        if (has_payload)
          return unsupported(
              fmt::format("a RecordIO record holds one payload: '{}', and no '{}'; "
                          "drop one of them",
                          payload_field, value.field));
        has_payload = true;
        payload_field = value.field;
        payload_ = value.bytes;
        continue;
      }
      if (!labels_.empty() && value.field != label_field)
        return unsupported(
            fmt::format("a RecordIO record holds the numbers of one field: '{}', "
                        "and no '{}'; drop one of them",
                        label_field, value.field));
      label_field = value.field;
      HEADRACE_ASSIGN(const float number, number_of(value));
      labels_.push_back(number);
    }
    if (!has_payload) return unsupported("a RecordIO record needs a payload; the sample has none");
    if (labels_.empty() && !has_labels)
      return unsupported(
          "a RecordIO record needs a label, a field of numbers; the sample has none");
    return {};
  }

  // A label is a float32: a class above 2^24 would come back as another one.
  static Result<float> number_of(const RecordValue& value) {
    if (value.kind == Kind::kFloat) return float32_of(value);
    HEADRACE_ASSIGN(const int64_t number, int_of(value));
    constexpr int64_t kMost = int64_t{1} << 24;
    if (number < -kMost || number > kMost)
      return unsupported(
          fmt::format("a RecordIO label is a float32, which cannot hold the {} of "
                      "field '{}'",
                      number, value.field));
    return static_cast<float>(number);
  }

  Status put_record() {
    const Bytes data = data_;
    uint64_t begin = 0;
    for (uint64_t at = 0; at + 4 <= data.size(); at += 4) {
      if (load_le<uint32_t>(data.subspan(at)) != kRecordioMagic) continue;
      HEADRACE_TRY(put_part(begin == 0 ? RecordPart::kFirst : RecordPart::kMiddle,
                            data.subspan(begin, at - begin)));
      begin = at + 4;
    }
    return put_part(begin == 0 ? RecordPart::kWhole : RecordPart::kLast, data.subspan(begin));
  }

  Status put_part(RecordPart kind, Bytes data) {
    std::array<std::byte, kRecordioHead> head;
    store_le(MutableBytes(head), kRecordioMagic);
    store_le(MutableBytes(head).subspan(4),
             static_cast<uint32_t>(kind) << 29 | static_cast<uint32_t>(data.size()));
    static constexpr std::array<std::byte, 4> kZeros{};
    const uint64_t pad = recordio_padded(data.size()) - data.size();
    HEADRACE_TRY(sink_->append(head));
    HEADRACE_TRY(sink_->append(data));
    at_ += head.size() + data.size() + pad;
    return sink_->append(Bytes(kZeros).first(pad));
  }

  std::unique_ptr<Sink> sink_, index_;
  const std::string label_list_;  // the field that holds several labels; "" where none does
  std::string lines_;             // of the .idx
  uint64_t id_ = 0;
  uint64_t at_ = 0;
  // Of the record at hand.
  std::vector<float> labels_;
  Bytes payload_;
  std::vector<std::byte> data_;
};

}  // namespace

Status recordio_can_hold(const Schema& schema) {
  const Field* payload = nullptr;
  const Field* label = nullptr;
  const Field* list = label_list_of(schema);
  for (const Field& field : schema) {
    const bool is_label = is_number(field.kind) || &field == list;
    const Field*& place = is_label ? label : payload;
    if (place != nullptr)
      return unsupported(
          fmt::format("a RecordIO record holds one {}: '{}', and no '{}'; drop one "
                      "of them",
                      is_label ? "field of numbers" : "payload", place->name, field.name));
    if (field.many && !is_number(field.kind))
      return unsupported(
          fmt::format("a RecordIO record holds one value of '{}', and some sample "
                      "has several",
                      field.name));
    place = &field;
  }
  if (payload == nullptr) return unsupported("a RecordIO record needs a payload; there is none");
  if (label == nullptr)
    return unsupported("a RecordIO record needs a label, a field of numbers; there is none");
  return {};
}

Result<std::unique_ptr<Writer>> make_recordio_writer(ShardOutput out) {
  const Field* list = label_list_of(out.schema);
  return std::unique_ptr<Writer>(std::make_unique<RecordioWriter>(
      std::move(out.file), std::move(out.companion), list == nullptr ? "" : list->name));
}

}  // namespace headrace
