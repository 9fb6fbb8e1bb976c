// SPDX-License-Identifier: Apache-2.0
//
// Samples as rows of a Parquet file: a column a field (parquet_columns.h), the key in `__key__`.
// Row groups are cut when what their columns hold reaches 16 MiB: a reader opens a whole one for a
// sample and shuffles among those it can hold, so that larger ones would mix less.

#include <fmt/format.h>

#include "format/parquet/columns.h"
#include "format/parquet/library.h"
#include "format/parquet/types.h"

namespace headrace {
namespace {

constexpr uint64_t kGroupBytes = uint64_t{16} << 20;
constexpr uint64_t kGroupRows = uint64_t{1} << 20;

bool is_picture(Kind kind) {
  return kind == Kind::kJpeg || kind == Kind::kPng || kind == Kind::kWebp;
}

// Bytes of which nothing is known may be pictures, and compressing those costs more than it gives;
// texts and numbers repeat themselves.
ParquetColumnOptions options_of(const Field& field, const ParquetColumnType& type) {
  ParquetColumnOptions out{.leaf = field.name,
                           .compress = !is_picture(field.kind) && field.kind != Kind::kBytes,
                           .repeats = field.kind == Kind::kInt || field.kind == Kind::kText};
  for (size_t i = 0; i < type.lists.size(); ++i) out.leaf += ".list.element";
  return out;
}

class ParquetWriter final : public Writer {
 public:
  ParquetWriter(std::unique_ptr<Sink> sink, ParquetColumn keys, std::vector<ParquetColumn> columns)
      : sink_(std::move(sink)), keys_(std::move(keys)), columns_(std::move(columns)) {}

  Status open() {
    HEADRACE_ASSIGN(const ParquetLibrary* library, parquet_library());
    std::vector<ArrowOwned<ArrowSchema>> schemas;
    std::vector<ParquetColumnOptions> options;
    schemas.push_back(keys_.schema());
    schemas.back()->name = kArrowKey.data();
    options.push_back({.leaf = std::string(kArrowKey), .repeats = false});
    for (const ParquetColumn& column : columns_) {
      schemas.push_back(column.schema());
      options.push_back(options_of(column.field(), column.type()));
    }
    HEADRACE_ASSIGN(file_, library->create(arrow_struct(std::move(schemas)), options, *sink_));
    return {};
  }

  Status append(const Record& record) override {
    const RecordValue key{.field = kArrowKey, .kind = Kind::kText, .bytes = as_bytes(record.key)};
    HEADRACE_TRY(keys_.add(std::span(&key, 1)));
    size_t used = 0;
    for (ParquetColumn& column : columns_) {
      const auto values = values_of(record, column.field().name);
      used += values.size();
      if (Status s = column.add(values); !s.ok()) return s.with(record.key);
    }
    if (used != record.values.size())
      return internal("a sample with a field that was not said").with(record.key);
    ++rows_;
    uint64_t bytes = keys_.bytes();
    for (const ParquetColumn& column : columns_) bytes += column.bytes();
    return bytes >= kGroupBytes || rows_ == kGroupRows ? write_group() : Status();
  }

  Status finish() override {
    if (rows_ > 0) HEADRACE_TRY(write_group());
    HEADRACE_TRY(file_->finish());
    return sink_->close();
  }

 private:
  static std::span<const RecordValue> values_of(const Record& record, std::string_view field) {
    size_t begin = 0;
    while (begin < record.values.size() && record.values[begin].field != field) ++begin;
    size_t end = begin;
    while (end < record.values.size() && record.values[end].field == field) ++end;
    return record.values.subspan(begin, end - begin);
  }

  Status write_group() {
    std::vector<ArrowOwned<ArrowArray>> arrays;
    arrays.push_back(keys_.take());
    for (ParquetColumn& column : columns_) arrays.push_back(column.take());
    const auto rows = static_cast<int64_t>(std::exchange(rows_, 0));
    return file_->write(arrow_struct(std::move(arrays), rows));
  }

  std::unique_ptr<Sink> sink_;
  ParquetColumn keys_;
  std::vector<ParquetColumn> columns_;
  std::unique_ptr<ParquetFileWriter> file_;  // before the sink it writes to
  uint64_t rows_ = 0;                        // of the row group at hand
};

}  // namespace

Result<std::unique_ptr<Writer>> make_parquet_writer(ShardOutput out) {
  // The name is the key's alone, so a column by it is made under another.
  HEADRACE_ASSIGN(ParquetColumn keys, ParquetColumn::make({.name = "key", .kind = Kind::kText}));
  std::vector<ParquetColumn> columns;
  for (const Field& field : out.schema) {
    HEADRACE_ASSIGN(ParquetColumn column, ParquetColumn::make(field));
    columns.push_back(std::move(column));
  }
  auto writer =
      std::make_unique<ParquetWriter>(std::move(out.file), std::move(keys), std::move(columns));
  HEADRACE_TRY(writer->open());
  return std::unique_ptr<Writer>(std::move(writer));
}

Status parquet_can_hold(const Schema& schema) {
  HEADRACE_TRY(parquet_library().status());
  for (const Field& field : schema) {
    const Result<ParquetColumnType> type = arrow_column_type(field);
    if (!type.ok()) return type.status();
  }
  return {};
}

}  // namespace headrace
