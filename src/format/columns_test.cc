// SPDX-License-Identifier: Apache-2.0
#include "format/columns.h"

#include <gtest/gtest.h>

#include "base/npy.h"

namespace headrace {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(Arrays, an_ndarray_of_mds_becomes_npy) {
  // int16 (17), 2 axes of extents in one byte: [1, 3].
  const auto value = bytes_of({17, 2 << 2, 1, 3, 1, 0, 2, 0, 255, 255});
  ArrayHead head;
  ASSERT_TRUE(parse_array(kNdarray, value, head).ok());
  ASSERT_TRUE(check_array(head, value.size()).ok());
  const uint64_t bytes = npy_bytes(head, value.size());
  Buffer npy;
  ASSERT_TRUE(open_array(kNdarray, value, bytes, npy).ok());
  const std::string_view text = as_text(npy.bytes());
  EXPECT_TRUE(text.starts_with("\x93NUMPY\x01"));
  EXPECT_NE(text.find("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }"),
            std::string_view::npos);
  EXPECT_EQ((npy.size() - 6) % 64, 0u);
  const auto again = parse_npy(npy.bytes(), npy.size());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().shape, head.shape);
  EXPECT_EQ(again.value().type.descr, "<i2");
  EXPECT_FALSE(open_array(kNdarray, value, bytes + 1, npy).ok());
}

TEST(Arrays, shapes_of_one_axis_and_of_none_are_tuples_of_python) {
  const std::vector<std::byte> three(3);
  std::vector<std::byte> out(npy_bytes({.descr = "|u1", .item_bytes = 1, .shape = {3}}, 3));
  make_npy({.descr = "|u1", .item_bytes = 1, .shape = {3}}, three, out);
  EXPECT_NE(as_text(out).find("'shape': (3,), }"), std::string_view::npos);
  const Bytes one = Bytes(three).first(1);
  out.resize(npy_bytes({.descr = "|u1", .item_bytes = 1}, 1));
  make_npy({.descr = "|u1", .item_bytes = 1}, one, out);
  EXPECT_NE(as_text(out).find("'shape': (), }"), std::string_view::npos);
}

TEST(Arrays, extents_whose_product_is_beyond_64_bits_are_no_array) {
  // uint8, 2 axes of 8 bytes each, 2^40 and 2^40.
  auto value = bytes_of({8, 2 << 2 | 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0});
  ArrayHead head;
  ASSERT_TRUE(parse_array(kNdarray, value, head).ok());
  EXPECT_EQ(check_array(head, value.size()).code(), Code::kCorrupt);
  for (size_t n = 0; n < value.size(); ++n)
    EXPECT_FALSE(parse_array(kNdarray, Bytes(value).first(n), head).ok()) << n;
}

TEST(Arrays, a_raw_picture_has_rows_columns_and_channels) {
  auto value = bytes_of({2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 'R', 'G', 'B', 1, 2, 3, 4, 5, 6});
  ArrayHead head;
  ASSERT_TRUE(parse_array(kRawPicture, value, head).ok());
  EXPECT_EQ(head.shape, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_TRUE(check_array(head, value.size()).ok());
  EXPECT_FALSE(check_array(head, value.size() - 1).ok());
  value[12] = std::byte{'Q'};
  EXPECT_EQ(parse_array(kRawPicture, value, head).code(), Code::kUnsupported);
}

TEST(Columns, sizes_that_do_not_fill_the_sample_are_errors) {
  const std::vector<StoredColumn> columns = {{.field = {.name = "a"}},
                                             {.field = {.name = "b"}, .fixed = 2}};
  auto sample = bytes_of({3, 0, 0, 0, 1, 2, 3, 4, 5});
  std::vector<Extent> places;
  ASSERT_TRUE(locate_columns(columns, {0, 9}, reads_from(sample), places).ok());
  EXPECT_EQ(places[1].begin, 7u);
  for (const uint64_t length : {0u, 3u, 6u, 8u})
    EXPECT_EQ(locate_columns(columns, {0, length}, reads_from(sample), places).code(),
              Code::kCorrupt);
  sample[3] = std::byte{0xff};
  EXPECT_EQ(locate_columns(columns, {0, 9}, reads_from(sample), places).code(), Code::kCorrupt);
}

TEST(Columns, a_list_that_says_more_than_there_is_is_an_error) {
  const StoredColumn column{.field = {.name = "c"}, .reading = Reading::kPictures};
  auto list = bytes_of({2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 'x', 'y', 'z'});
  std::vector<ColumnValue> values;
  ASSERT_TRUE(column_values(column, {0, list.size()}, reads_from(list), values).ok());
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[1].place.begin, 13u);
  for (size_t n = 0; n < list.size(); ++n)
    EXPECT_FALSE(column_values(column, {0, n}, reads_from(list), values).ok()) << n;
  list[3] = std::byte{0x7f};
  EXPECT_FALSE(column_values(column, {0, list.size()}, reads_from(list), values).ok());
}

TEST(Columns, numbers_keep_their_sign_and_width) {
  Number number;
  ASSERT_TRUE(load_number(DType::kI8, bytes_of({0xff}), number).ok());
  EXPECT_EQ(number.whole, -1);
  ASSERT_TRUE(load_number(DType::kU8, bytes_of({0xff}), number).ok());
  EXPECT_EQ(number.whole, 255);
  ASSERT_TRUE(load_number(DType::kF16, bytes_of({0x00, 0x3c}), number).ok());
  EXPECT_TRUE(number.is_float && number.real == 1.0);
  EXPECT_EQ(load_number(DType::kI64, bytes_of({1}), number).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace headrace
