// SPDX-License-Identifier: Apache-2.0
//
// Columns that are made here and read here; what pyarrow makes and reads is in
// tests/test_parquet.py.
#include <gtest/gtest.h>

#include "format/parquet/columns.h"
#include "format/parquet/rows.h"
#include "format/parquet/types.h"
#include "format/records.h"

namespace headrace {
namespace {

std::string raw(const std::vector<int32_t>& numbers) {
  return std::string(as_text(std::as_bytes(std::span(numbers))));
}

RecordValue value_of(const Field& field, std::string_view text) {
  return {field.name, field.kind, Storage::kExtent, as_bytes(text)};
}

// The rows, written and read: of each the values.
using Row = std::vector<std::string>;
Result<std::vector<Row>> there_and_back(const Field& field, const std::vector<Row>& rows) {
  HEADRACE_ASSIGN(ParquetColumn column, ParquetColumn::make(field));
  for (const Row& row : rows) {
    std::vector<RecordValue> values;
    for (const std::string& text : row) values.push_back(value_of(field, text));
    HEADRACE_TRY(column.add(values));
  }
  const ArrowOwned<ArrowSchema> schema = column.schema();
  const ArrowOwned<ArrowArray> array = column.take();
  RowTableBuilder builder;
  HEADRACE_TRY(add_rows(*schema, *array, builder));
  Buffer unit;
  builder.finish(unit);
  HEADRACE_ASSIGN(const RowTable table, RowTable::open(unit.bytes()));
  std::vector<Row> out(table.rows());
  for (uint64_t r = 0; r < out.size(); ++r)
    for (uint64_t v = 0; v < table.values(r); ++v) {
      HEADRACE_ASSIGN(const Bytes value, table.value(r, v));
      out[r].emplace_back(as_text(value));
    }
  return out;
}

ParquetLeaves leaves_of(const Field& field) {
  std::vector<ArrowOwned<ArrowSchema>> columns;
  columns.push_back(ParquetColumn::make(field).value().schema());
  return arrow_leaves(*arrow_struct(std::move(columns))).value();
}

TEST(ArrowColumns, bytes_and_texts_come_back_with_their_nulls) {
  const std::vector<Row> rows = {{"one"}, {}, {""}, {std::string(100000, 'x')}, {}};
  for (const Kind kind : {Kind::kBytes, Kind::kText, Kind::kJpeg})
    EXPECT_EQ(there_and_back({.name = "a", .kind = kind}, rows).value(), rows);
}

TEST(ArrowColumns, several_values_stay_several) {
  const std::vector<Row> rows = {{"one", "two"}, {}, {"three"}, {"", "four", ""}};
  EXPECT_EQ(there_and_back({.name = "a", .kind = Kind::kPng, .many = true}, rows).value(), rows);
}

TEST(ArrowColumns, arrays_come_back_whole) {
  const Field varies{
      .name = "a", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {kVaries, 2}};
  const std::vector<Row> rows = {{raw({1, 2, 3, 4})}, {}, {raw({})}, {raw({5, 6})}};
  EXPECT_EQ(there_and_back(varies, rows).value(), rows);
  const Field fixed{.name = "a", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {2, 2}};
  const std::vector<Row> squares = {{raw({1, 2, 3, 4})}, {}, {raw({5, 6, 7, 8})}};
  EXPECT_EQ(there_and_back(fixed, squares).value(), squares);
  const auto odd = there_and_back(varies, {{raw({1, 2, 3})}});
  EXPECT_EQ(odd.status().code(), Code::kCorrupt);
  EXPECT_NE(odd.status().message().find("12 bytes are no array i32[?,2]"), std::string_view::npos);
}

TEST(ArrowColumns, fields_come_back_as_they_were) {
  const Field fields[] = {
      {.name = "seg.png", .kind = Kind::kPng},
      {.name = "a", .kind = Kind::kNpy, .many = true},
      {.name = "a", .kind = Kind::kJson},
      {.name = "a", .kind = Kind::kInt, .storage = Storage::kInline, .dtype = DType::kU8},
      {.name = "a", .kind = Kind::kFloat, .storage = Storage::kInline, .dtype = DType::kF16},
      {.name = "a", .kind = Kind::kTokens, .dtype = DType::kU16},
      {.name = "a", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {3, 4}},
      {.name = "a", .kind = Kind::kArray, .dtype = DType::kI64, .shape = {kVaries, 4, 5}},
  };
  for (const Field& field : fields) {
    const ParquetLeaves leaves = leaves_of(field);
    ASSERT_EQ(leaves.fields.size(), 1u) << field_text(field);
    EXPECT_EQ(leaves.fields[0].field, field) << field_text(leaves.fields[0].field);
    EXPECT_EQ(leaves.fields[0].field.many, field.many);
    EXPECT_FALSE(leaves.fields[0].by_inspection);
  }
}

TEST(ArrowColumns, numbers_keep_their_width_and_are_refused_beyond_it) {
  const Field u8{.name = "n", .kind = Kind::kInt, .dtype = DType::kU8};
  ParquetColumn column = ParquetColumn::make(u8).value();
  for (const std::string_view text : {"0", "255"}) {
    const RecordValue value = value_of(u8, text);
    ASSERT_TRUE(column.add(std::span(&value, 1)).ok());
  }
  ASSERT_TRUE(column.add({}).ok());
  for (const std::string_view text : {"-1", "256"}) {
    const RecordValue value = value_of(u8, text);
    EXPECT_EQ(column.add(std::span(&value, 1)).code(), Code::kCorrupt) << text;
  }
  ParquetNumbers numbers;
  ASSERT_TRUE(add_numbers(*column.schema(), *column.take(), numbers).ok());
  EXPECT_EQ(numbers.ints, (std::vector<int64_t>{0, 255, 0}));
  EXPECT_EQ(numbers.present, (std::vector<bool>{true, true, false}));
}

TEST(ArrowColumns, what_no_column_holds_is_refused_by_name) {
  const Field fields[] = {
      {.name = "__key__"},
      {.name = "half", .kind = Kind::kArray, .dtype = DType::kBF16, .shape = {3}},
      {.name = "odd", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {3, kVaries}},
      {.name = "two", .kind = Kind::kArray, .dtype = DType::kI32, .shape = {3}, .many = true},
  };
  for (const Field& field : fields) {
    const auto type = arrow_column_type(field);
    ASSERT_EQ(type.status().code(), Code::kUnsupported);
    EXPECT_NE(type.status().message().find("'" + field.name + "'"), std::string_view::npos);
  }
}

TEST(ArrowTypes, pictures_are_known_by_their_first_bytes) {
  EXPECT_EQ(kind_of_magic("\xff\xd8\xff\xe0"), Kind::kJpeg);
  EXPECT_EQ(kind_of_magic("\x89PNG\r\n\x1a\n"), Kind::kPng);
  EXPECT_EQ(kind_of_magic("RIFF1234WEBPVP8 "), Kind::kWebp);
  EXPECT_EQ(kind_of_magic("RIFF1234WAVE"), Kind::kBytes);
  EXPECT_EQ(kind_of_magic("RIFF"), Kind::kBytes);
  EXPECT_EQ(kind_of_magic(""), Kind::kBytes);
}

}  // namespace
}  // namespace headrace
