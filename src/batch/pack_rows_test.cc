// SPDX-License-Identifier: Apache-2.0
#include "batch/pack_rows.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

class PackRowsTest : public ::testing::Test {
 protected:
  // Columns of i32 lists: one value for each sample.
  Batch batch_of(const std::vector<std::vector<std::vector<int32_t>>>& columns,
                 std::vector<int64_t> groups) {
    Batch out;
    out.groups = std::move(groups);
    for (const auto& values : columns) {
      Column& column = out.columns.emplace_back();
      column.packing = Packing::kList;
      column.dtype = DType::kI32;
      for (const auto& value : values) {
        column.items.push_back(pool_->take(4 * value.size()));
        std::memcpy(column.items.back()->data(), value.data(), 4 * value.size());
        column.shapes.push_back({static_cast<int64_t>(value.size())});
      }
    }
    for (size_t i = 0; i < columns[0].size(); ++i) out.indices.push_back(static_cast<int64_t>(i));
    return out;
  }
  static std::vector<int32_t> numbers(const Column& column) {
    std::vector<int32_t> out;
    for (size_t i = 0; i < column.values->size(); i += size_of(column.dtype))
      out.push_back(column.dtype == DType::kU8
                        ? load_le<uint8_t>(column.values->bytes().subspan(i))
                        : load_le<int32_t>(column.values->bytes().subspan(i)));
    return out;
  }
  static std::vector<int32_t> item(const Column& column, size_t i) {
    std::vector<int32_t> out;
    for (size_t at = 0; at < column.items[i]->size(); at += 4)
      out.push_back(load_le<int32_t>(column.items[i]->bytes().subspan(at)));
    return out;
  }
  static ColumnSpec list(const std::string& name) {
    return {name, {DType::kI32, {kVaries}}, Packing::kList};
  }
  using Numbers = std::vector<int32_t>;
  std::shared_ptr<BufferPool> pool_ = BufferPool::make(1 << 20);
};

TEST_F(PackRowsTest, samples_lie_one_after_the_other_with_borders_positions_and_mask) {
  const ColumnSpec specs[] = {list("t")};
  const RowPacking packing{.length = 8, .column = "t", .columns = {{"t", int64_t{9}}}};
  const auto stage = make_row_packing(packing, specs).value();
  Batch batch = batch_of({{{1, 2, 3}, {4, 5}, {6, 7, 8, 1}}}, {0, 2, 3});
  ASSERT_TRUE(stage->apply(batch, Key(0), *pool_).ok());
  ASSERT_EQ(batch.columns.size(), 4u);
  EXPECT_EQ(batch.columns[0].shape, (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(numbers(batch.columns[0]), (Numbers{1, 2, 3, 4, 5, 9, 9, 9, 6, 7, 8, 1, 9, 9, 9, 9}));
  EXPECT_EQ(numbers(batch.columns[1]), (Numbers{0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(numbers(batch.columns[2]), (Numbers{0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(item(batch.columns[3], 0), (Numbers{0, 3, 5, 8}));
  EXPECT_EQ(item(batch.columns[3], 1), (Numbers{0, 4, 8}));
  const auto added = added_columns(packing, specs);
  ASSERT_EQ(added.size(), 3u);
  EXPECT_EQ(added[0].name, "positions");
}

TEST_F(PackRowsTest, a_full_row_has_no_border_of_padding) {
  const ColumnSpec specs[] = {list("t")};
  const auto stage =
      make_row_packing({.length = 3, .column = "t", .columns = {{"t", int64_t{0}}}}, specs).value();
  Batch batch = batch_of({{{1, 2}, {3}}}, {0, 2});
  ASSERT_TRUE(stage->apply(batch, Key(0), *pool_).ok());
  EXPECT_EQ(item(batch.columns[3], 0), (Numbers{0, 2, 3}));
}

TEST_F(PackRowsTest, fields_of_one_length_are_packed_alike_and_keep_their_names) {
  const ColumnSpec specs[] = {list("labels"), list("t"), list("loss_mask")};
  const RowPacking packing{
      .length = 4,
      .column = "t",
      .columns = {{"labels", int64_t{-100}}, {"t", int64_t{0}}, {"loss_mask", int64_t{0}}}};
  const auto stage = make_row_packing(packing, specs).value();
  Batch batch = batch_of({{{7}, {8, 9}}, {{1}, {2, 3}}, {{1}, {0, 1}}}, {0, 2});
  ASSERT_TRUE(stage->apply(batch, Key(0), *pool_).ok());
  EXPECT_EQ(numbers(batch.columns[0]), (Numbers{7, 8, 9, -100}));
  EXPECT_EQ(numbers(batch.columns[2]), (Numbers{1, 0, 1, 0}));
  EXPECT_EQ(batch.columns.size(), 5u);  // the user's loss_mask stays the only one
  Batch wrong = batch_of({{{7}, {8}}, {{1}, {2, 3}}, {{1}, {0, 1}}}, {0, 2});
  const Status status = stage->apply(wrong, Key(0), *pool_);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.text().find("'labels' has 1 elements where 't' has 2"), std::string::npos);
}

TEST_F(PackRowsTest, longer_samples_keep_their_beginning_or_their_end) {
  const ColumnSpec specs[] = {list("t")};
  for (const bool keep_end : {false, true}) {
    const auto stage =
        make_row_packing(
            {.length = 2, .column = "t", .columns = {{"t", int64_t{0}}}, .keep_end = keep_end},
            specs)
            .value();
    Batch batch = batch_of({{{1, 2, 3}}}, {0, 1});
    ASSERT_TRUE(stage->apply(batch, Key(0), *pool_).ok());
    EXPECT_EQ(numbers(batch.columns[0]), keep_end ? (Numbers{2, 3}) : (Numbers{1, 2}));
  }
}

TEST_F(PackRowsTest, what_cannot_be_packed_is_said) {
  const ColumnSpec dense[] = {{"t", {DType::kI32, {4}}, Packing::kDense}};
  const RowPacking packing{.length = 4, .column = "t", .columns = {{"t", int64_t{0}}}};
  EXPECT_EQ(make_row_packing(packing, dense).status().code(), Code::kInvalidArgument);
  const ColumnSpec specs[] = {list("t")};
  const auto stage = make_row_packing(packing, specs).value();
  Batch batch = batch_of({{{1, 2, 3}, {4, 5}}}, {0, 2});
  EXPECT_NE(stage->apply(batch, Key(0), *pool_).text().find("count them again"), std::string::npos);
  Batch empty = batch_of({{}}, {});
  ASSERT_TRUE(stage->apply(empty, Key(0), *pool_).ok());
  EXPECT_EQ(empty.columns[0].shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(empty.columns.size(), 4u);
}

}  // namespace
}  // namespace headrace
