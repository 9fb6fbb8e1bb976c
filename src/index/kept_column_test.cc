// SPDX-License-Identifier: Apache-2.0
#include "index/kept_column.h"

#include <gtest/gtest.h>

#include "storage/sink.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

const Hash128 kStamp{1, 2};

TEST(KeptColumn, comes_back_as_it_was) {
  const TestFolder folder;
  const std::string path = folder.path() + "/c";
  const FieldColumn numbers{
      .type = ColumnType::kInt, .present = {1, 0, 1}, .ints = {-5, 0, 1 << 30}};
  const FieldColumn reals{.type = ColumnType::kFloat, .present = {1, 1}, .floats = {0.25, -1e300}};
  const FieldColumn texts{
      .type = ColumnType::kText, .present = {1, 0, 1}, .texts = {"a", "", "Zürich"}};
  for (const FieldColumn& column : {numbers, reals, texts}) {
    ASSERT_TRUE(write_column(path, kStamp, column).ok());
    const FieldColumn back = read_column(path, kStamp).value();
    EXPECT_EQ(back.type, column.type);
    EXPECT_EQ(back.present, column.present);
    EXPECT_EQ(back.ints, column.ints);
    EXPECT_EQ(back.floats, column.floats);
    EXPECT_EQ(back.texts, column.texts);
  }
}

TEST(KeptColumn, of_other_data_cut_or_changed_it_is_as_good_as_none) {
  const TestFolder folder;
  const std::string path = folder.path() + "/c";
  ASSERT_TRUE(
      write_column(path, kStamp, {.type = ColumnType::kText, .present = {1}, .texts = {"ab"}})
          .ok());
  EXPECT_EQ(read_column(path, {1, 3}).status().code(), Code::kNotFound);
  EXPECT_EQ(read_column(folder.path() + "/none", kStamp).status().code(), Code::kNotFound);
  const Buffer whole = TestFolder::store()->read_all(path).value();
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    ASSERT_TRUE(write_file(path, whole.bytes().first(cut)).ok());
    EXPECT_EQ(read_column(path, kStamp).status().code(), Code::kNotFound) << cut;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> changed(whole.bytes().begin(), whole.bytes().end());
    changed[at] ^= std::byte{4};
    ASSERT_TRUE(write_file(path, changed).ok());
    EXPECT_EQ(read_column(path, kStamp).status().code(), Code::kNotFound) << at;
  }
}

}  // namespace
}  // namespace headrace
