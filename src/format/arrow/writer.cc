// SPDX-License-Identifier: Apache-2.0
//
// Samples as an Arrow IPC file.  A batch is written when it has 64 MiB or 65,536 rows: until
// then its values are in memory.  Bodies, and the buffers in them, begin at multiples of 64.

#include "format/arrow/writer.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/utf8.h"
#include "format/arrow/output.h"
#include "storage/lru.h"

namespace headrace {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;
constexpr uint64_t kBatchRows = uint64_t{1} << 16;
constexpr uint64_t kMaxValue = INT32_MAX - kBatchBytes;  // so that offsets of 32 bits do
constexpr uint64_t kAlign = 64;

class ArrowWriter final : public Writer {
 public:
  explicit ArrowWriter(ShardOutput out) : sink_(std::move(out.file)) {
    columns_.emplace_back(Field{.name = std::string(kArrowKey), .kind = Kind::kText});
    for (const Field& field : out.schema) {
      numbers_.emplace(field.name, columns_.size());
      columns_.emplace_back(field);
    }
    for (const ArrowOutput& column : columns_) column.describe(schema_);
    values_.resize(columns_.size());
  }

  Status append(const Record& record) override {
    if (at_ == 0) HEADRACE_TRY(begin());
    uint64_t bytes = record.key.size();
    for (const RecordValue& value : record.values) {
      if (value.bytes.size() > kMaxValue)
        return unsupported(fmt::format("field '{}' has {} bytes; a value of an Arrow file has less "
                                       "than 2 GiB here",
                                       value.field, value.bytes.size()))
            .with(record.key);
      bytes += value.bytes.size();
    }
    if (rows_ > 0 && (bytes > kBatchBytes - std::min(bytes_, kBatchBytes) || rows_ == kBatchRows))
      HEADRACE_TRY(flush());
    bytes_ += bytes;
    ++rows_;
    const Status status = add(record);
    return status.ok() ? status : status.with(record.key);
  }

  Status finish() override {
    if (at_ == 0) HEADRACE_TRY(begin());
    if (rows_ > 0) HEADRACE_TRY(flush());
    std::vector<std::byte> end(8);
    store_le(MutableBytes(end), kArrowContinuation);
    const std::vector<std::byte> footer = arrow_footer(schema_, blocks_);
    end.insert(end.end(), footer.begin(), footer.end());
    std::array<std::byte, 4> length;
    store_le(MutableBytes(length), static_cast<int32_t>(footer.size()));
    end.insert(end.end(), length.begin(), length.end());
    const Bytes magic = as_bytes(kArrowMagic);
    end.insert(end.end(), magic.begin(), magic.end());
    HEADRACE_TRY(sink_->append(end));
    return sink_->close();
  }

 private:
  Status begin() {
    std::array<std::byte, 8> head{};
    std::copy_n(as_bytes(kArrowMagic).begin(), kArrowMagic.size(), head.begin());
    HEADRACE_TRY(put(head));
    return put_message(arrow_schema_message(schema_), {}, nullptr);
  }

  // Values of one field follow one another.
  Status add(const Record& record) {
    for (std::span<const RecordValue>& values : values_) values = {};
    const RecordValue key{.field = kArrowKey, .kind = Kind::kText, .bytes = as_bytes(record.key)};
    values_[0] = {&key, 1};
    for (size_t i = 0; i < record.values.size();) {
      size_t end = i + 1;
      while (end < record.values.size() && record.values[end].field == record.values[i].field)
        ++end;
      const auto number = numbers_.find(record.values[i].field);
      if (number == numbers_.end() || !values_[number->second].empty())
        return internal(
            fmt::format("field '{}' was not said to come, or comes twice", record.values[i].field));
      values_[number->second] = record.values.subspan(i, end - i);
      i = end;
    }
    for (size_t c = 0; c < columns_.size(); ++c) HEADRACE_TRY(columns_[c].add_row(values_[c]));
    return {};
  }

  Status flush() {
    ArrowBatchOutput out;
    out.batch.rows = static_cast<int64_t>(rows_);
    out.body.reserve(bytes_ + bytes_ / 8);
    for (ArrowOutput& column : columns_) column.take(out);
    rows_ = bytes_ = 0;
    ArrowBlock block;
    HEADRACE_TRY(put_message(arrow_batch_message(out.batch, static_cast<int64_t>(out.body.size())),
                             out.body, &block));
    blocks_.push_back(block);
    return {};
  }

  // The metadata are padded so that the body begins at a multiple of 64.
  Status put_message(std::vector<std::byte> metadata, Bytes body, ArrowBlock* block) {
    const uint64_t begin = at_;
    const uint64_t end = (begin + 8 + metadata.size() + kAlign - 1) / kAlign * kAlign;
    metadata.resize(end - begin - 8);
    std::array<std::byte, 8> prefix;
    store_le(MutableBytes(prefix), kArrowContinuation);
    store_le(MutableBytes(prefix).subspan(4), static_cast<int32_t>(metadata.size()));
    if (block != nullptr)
      *block = {static_cast<int64_t>(begin), static_cast<int32_t>(end - begin),
                static_cast<int64_t>(body.size())};
    HEADRACE_TRY(put(prefix));
    HEADRACE_TRY(put(metadata));
    return put(body);
  }

  Status put(Bytes bytes) {
    at_ += bytes.size();
    return sink_->append(bytes);
  }

  std::unique_ptr<Sink> sink_;
  ArrowFileSchema schema_;
  std::vector<ArrowOutput> columns_;  // the key first
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> numbers_;
  std::vector<std::span<const RecordValue>> values_;  // of the row at hand, by column
  uint64_t rows_ = 0;                                 // of the batch at hand
  uint64_t bytes_ = 0;
  uint64_t at_ = 0;
  std::vector<ArrowBlock> blocks_;
};

}  // namespace

Status arrow_can_hold(const Schema& schema) {
  std::set<std::string_view> names = {kArrowKey};
  for (const Field& field : schema) {
    if (field.name.empty() || valid_utf8_prefix(as_bytes(field.name)) < field.name.size())
      return unsupported(
          fmt::format("an Arrow column must have a name in UTF-8, and '{}' is none: leave the "
                      "field out",
                      field.name));
    if (!names.insert(field.name).second)
      return unsupported(fmt::format(
          "an Arrow file cannot hold a field named '{}' ({}): leave it "
          "out",
          field.name, field.name == kArrowKey ? "it is the key's" : "there are two of them"));
  }
  return {};
}

Result<std::unique_ptr<Writer>> make_arrow_writer(ShardOutput out) {
  HEADRACE_TRY(arrow_can_hold(out.schema));
  return std::unique_ptr<Writer>(std::make_unique<ArrowWriter>(std::move(out)));
}

}  // namespace headrace
