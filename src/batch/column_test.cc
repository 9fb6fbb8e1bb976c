// SPDX-License-Identifier: Apache-2.0
#include "batch/column.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

void put(ColumnBuilder& builder, size_t i, std::initializer_list<uint8_t> values) {
  const std::vector<int64_t> shape{static_cast<int64_t>(values.size())};
  const MutableBytes room = builder.room(i, shape).value();
  std::copy(values.begin(), values.end(), reinterpret_cast<uint8_t*>(room.data()));
}

std::vector<int> numbers(const SharedBuffer& buffer) {
  std::vector<int> out;
  for (const std::byte b : buffer->bytes()) out.push_back(static_cast<int>(b));
  return out;
}

TEST(ColumnTest, ManyAsListsKeepsTheirOrderAndWhoseTheyAre) {
  const auto pool = BufferPool::make(0);
  const ColumnSpec spec{"x", {DType::kU8, {kVaries}}, Packing::kList, true};
  ColumnBuilder builder(spec, 4, *pool);
  // Slots are filled in any order; slot 3 is never asked for.
  ColumnBuilder& last = builder.values(2, 2);
  put(last, 0, {7});
  put(last, 1, {8, 9});
  builder.values(1, 0);
  put(builder.values(0, 1), 0, {1, 2, 3});
  const Column column = builder.finish();
  EXPECT_TRUE(column.many);
  EXPECT_EQ(column.first, (std::vector<int64_t>{0, 1, 1, 3, 3}));
  ASSERT_EQ(column.items.size(), 3u);
  EXPECT_EQ(numbers(column.items[0]), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(numbers(column.items[2]), (std::vector<int>{8, 9}));
  EXPECT_EQ(column.shapes[1], std::vector<int64_t>{1});
}

TEST(ColumnTest, ManyOfOneShapeIsOneBuffer) {
  const auto pool = BufferPool::make(0);
  const ColumnSpec spec{"x", {DType::kU8, {2}}, Packing::kRagged, true};
  ColumnBuilder builder(spec, 3, *pool);
  put(builder.values(0, 1), 0, {9, 9});
  put(builder.values(0, 1), 0, {1, 2});  // a replaced sample
  builder.values(1, 0);
  ColumnBuilder& last = builder.values(2, 2);
  put(last, 1, {5, 6});
  put(last, 0, {3, 4});
  const Column column = builder.finish();
  EXPECT_EQ(column.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(column.offsets, (std::vector<int64_t>{0, 1, 1, 3}));
  EXPECT_EQ(numbers(column.values), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  ColumnBuilder other(spec, 1, *pool);
  const std::vector<int64_t> wrong{3};
  EXPECT_EQ(other.values(0, 1).room(0, wrong).status().code(), Code::kCorrupt);
}

TEST(ColumnTest, ManyWithoutAnyValue) {
  const auto pool = BufferPool::make(0);
  const ColumnSpec spec{"x", {DType::kF32, {4}}, Packing::kRagged, true};
  const Column column = ColumnBuilder(spec, 2, *pool).finish();
  EXPECT_EQ(column.shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(column.offsets, (std::vector<int64_t>{0, 0, 0}));
}

}  // namespace
}  // namespace headrace
