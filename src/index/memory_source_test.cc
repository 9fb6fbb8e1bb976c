// SPDX-License-Identifier: Apache-2.0
#include "index/memory_source.h"

#include <gtest/gtest.h>

#include <cstring>

namespace headrace {
namespace {

const std::byte* bytes_of(const void* p) {
  return static_cast<const std::byte*>(p);
}

template <typename T>
T inline_number(const Request& r, size_t field) {
  const Piece& piece = r.pieces[r.first_piece[field]];
  EXPECT_EQ(piece.unit, kInlineUnit);
  T out;
  EXPECT_EQ(piece.length, sizeof(T));
  std::memcpy(&out, r.inline_bytes.data() + piece.begin, sizeof(T));
  return out;
}

MemoryColumn numbers(const std::string& name, Kind kind, DType dtype, const void* data,
                     int64_t stride) {
  return {.field = {.name = name, .kind = kind, .storage = Storage::kInline, .dtype = dtype},
          .data = bytes_of(data),
          .row_bytes = size_of(dtype),
          .stride = stride};
}

TEST(MemorySource, WidensNumbersAndFollowsStrides) {
  const int8_t small[] = {-1, 9, 2, 9, 127, 9};
  const float real[] = {0.5f, 1.5f, -2.0f};
  const uint8_t present[] = {1, 0, 1};
  MemoryColumns columns{.name = "test", .samples = 3};
  columns.columns.push_back(numbers("a", Kind::kInt, DType::kI8, small, 2));
  // From the last to the first.
  columns.columns.push_back(
      numbers("b", Kind::kFloat, DType::kF32, real + 2, -static_cast<int64_t>(sizeof(float))));
  columns.columns[1].present = present;
  const auto made = memory_source(std::move(columns));
  ASSERT_TRUE(made.ok()) << made.status().text();
  const uint32_t fields[] = {0, 1};
  Request r;
  ASSERT_TRUE(made.value()->needs({.sample = 2, .fields = fields}, r).ok());
  EXPECT_EQ(inline_number<int64_t>(r, 0), 127);
  EXPECT_EQ(inline_number<double>(r, 1), 0.5);
  ASSERT_TRUE(made.value()->needs({.sample = 1, .fields = fields}, r).ok());
  EXPECT_EQ(inline_number<int64_t>(r, 0), 2);
  EXPECT_EQ(r.first_piece[2], r.first_piece[1]);  // absent
}

TEST(MemorySource, LendsLargeRowsWhereTheyLie) {
  std::vector<std::byte> data(3 * 1024);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i / 1024);
  MemoryColumn column{
      .field = {.name = "x", .kind = Kind::kArray, .dtype = DType::kU8, .shape = {1024}},
      .data = data.data(),
      .row_bytes = 1024,
      .stride = 1024};
  const auto made = memory_source({.name = "test", .samples = 3, .columns = {column}});
  ASSERT_TRUE(made.ok());
  const Source& source = *made.value();
  const uint32_t fields[] = {0};
  Request r;
  ASSERT_TRUE(source.needs({.sample = 1, .fields = fields}, r).ok());
  ASSERT_EQ(r.units.size(), 1U);
  const auto pin = source.store().pin(source.file_path(0), r.units[0].offset, 1024);
  ASSERT_TRUE(pin.has_value());
  EXPECT_EQ(pin->bytes().data(), data.data() + 1024);
  EXPECT_FALSE(source.store().pin(source.file_path(0), 2049, 1024).has_value());
  Buffer into;
  EXPECT_EQ(source.store().read_at(source.file_path(0), 3072, 1, into).code(), Code::kCorrupt);
  EXPECT_EQ(source.file_path(1), "");
}

TEST(MemorySource, RefusesWhatItCannotRead) {
  std::vector<std::byte> data(4096);
  MemoryColumn strided{
      .field = {.name = "x", .kind = Kind::kArray, .dtype = DType::kU8, .shape = {1024}},
      .data = data.data(),
      .row_bytes = 1024,
      .stride = 2048};
  EXPECT_FALSE(memory_source({.name = "t", .samples = 2, .columns = {strided}}).ok());
  const uint64_t offsets[] = {0, 5, 3};
  MemoryColumn text{
      .field = {.name = "t", .kind = Kind::kText}, .data = data.data(), .offsets = offsets};
  EXPECT_FALSE(memory_source({.name = "t", .samples = 2, .columns = {text}}).ok());
}

}  // namespace
}  // namespace headrace
