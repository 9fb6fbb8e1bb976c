// SPDX-License-Identifier: Apache-2.0
#include "batch/column.h"

#include <gtest/gtest.h>

#include <thread>

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

uint64_t held_by(BufferPool& pool, std::initializer_list<size_t> sizes) {
  std::vector<SharedBuffer> all;
  uint64_t sum = 0;
  for (const size_t bytes : sizes) sum += all.emplace_back(pool.take(bytes))->held_bytes();
  return sum;
}

TEST(ColumnTest, BytesAreThoseHeldNow) {
  const auto pool = BufferPool::make(0);
  const ColumnSpec dense{"x", {DType::kF32, {10}}, Packing::kDense};
  EXPECT_EQ(ColumnBuilder(dense, 4, *pool).bytes(), held_by(*pool, {160}));

  for (const Packing packing : {Packing::kList, Packing::kRagged, Packing::kPadded}) {
    const ColumnSpec spec{"x", {DType::kU8, {kVaries}}, packing};
    ColumnBuilder builder(spec, 3, *pool);
    EXPECT_EQ(builder.bytes(), 0u);
    ASSERT_TRUE(builder.room(0, std::vector<int64_t>{1000}).ok());
    ASSERT_TRUE(builder.room(1, std::vector<int64_t>{50'000}).ok());
    EXPECT_EQ(builder.bytes(), held_by(*pool, {1000, 50'000}));
    ASSERT_TRUE(builder.room(1, std::vector<int64_t>{200}).ok());  // a replaced sample
    EXPECT_EQ(builder.bytes(), held_by(*pool, {1000, 200}));
    builder.adopt(2, pool->take(7000));
    builder.adopt(2, pool->take(9000));
    EXPECT_EQ(builder.bytes(), held_by(*pool, {1000, 200, 9000}));
    const Column column = builder.finish();
    EXPECT_EQ(builder.bytes(), 0u);
    const uint64_t packed = packing == Packing::kList     ? held_by(*pool, {1000, 200, 9000})
                            : packing == Packing::kRagged ? held_by(*pool, {10'200})
                                                          : held_by(*pool, {27'000});
    EXPECT_EQ(held_bytes(column), packed);
  }
}

TEST(ColumnTest, BytesOfManyAreThoseOfAllValues) {
  const auto pool = BufferPool::make(0);
  const ColumnSpec list{"x", {DType::kU8, {kVaries}}, Packing::kList, true};
  const ColumnSpec ragged{"x", {DType::kU8, {100}}, Packing::kRagged, true};
  ColumnBuilder lists(list, 2, *pool);
  ColumnBuilder& values = lists.values(0, 2);
  ASSERT_TRUE(values.room(0, std::vector<int64_t>{1000}).ok());
  ASSERT_TRUE(values.room(1, std::vector<int64_t>{2000}).ok());
  values.adopt(1, pool->take(3000));
  EXPECT_EQ(lists.bytes(), held_by(*pool, {1000, 3000}));
  ASSERT_TRUE(lists.values(0, 1).room(0, std::vector<int64_t>{10}).ok());  // a replaced sample
  EXPECT_EQ(lists.bytes(), held_by(*pool, {10}));
  EXPECT_EQ(held_bytes(lists.finish()), held_by(*pool, {10}));
  EXPECT_EQ(lists.bytes(), 0u);

  ColumnBuilder joined(ragged, 2, *pool);
  joined.values(0, 30);
  joined.values(0, 20);
  joined.values(1, 5);
  EXPECT_EQ(joined.bytes(), held_by(*pool, {2000, 500}));
  EXPECT_EQ(held_bytes(joined.finish()), held_by(*pool, {2500}));
  EXPECT_EQ(joined.bytes(), 0u);
}

TEST(ColumnTest, BytesMayBeAskedWhileThreadsFillSlots) {
  const auto pool = BufferPool::make(1 << 20);
  const ColumnSpec spec{"x", {DType::kU8, {kVaries}}, Packing::kList};
  constexpr size_t kSlots = 64;
  ColumnBuilder builder(spec, kSlots, *pool);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < kSlots; i = next++)
        for (int64_t again = 1; again < 20; ++again)
          ASSERT_TRUE(builder.room(i, std::vector<int64_t>{again * 500}).ok());
    });
  uint64_t most = 0;
  while (next.load() < kSlots) most = std::max(most, builder.bytes());
  for (std::thread& thread : threads) thread.join();
  const uint64_t held = builder.bytes();
  EXPECT_LE(most, kSlots * uint64_t{20'000});
  EXPECT_EQ(held_bytes(builder.finish()), held);
}

}  // namespace
}  // namespace headrace
