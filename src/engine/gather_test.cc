// SPDX-License-Identifier: Apache-2.0
#include "engine/gather.h"

#include <gtest/gtest.h>

#include "engine/read_now.h"
#include "index/indexed_source.h"
#include "index/part_builder.h"
#include "index/shards.h"
#include "storage/held.h"
#include "storage/memory.h"

namespace headrace {
namespace {

// Three samples of a field in one file of 64 KiB: bytes 0-99, 100-199, and 60,000-60,099.
std::shared_ptr<const Source> three_values(bool is_held = false) {
  auto memory = std::make_shared<MemoryStore>();
  std::vector<std::byte> bytes(65536);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i / 100);
  memory->put("shard", std::move(bytes));
  std::shared_ptr<const Store> store = memory;
  if (is_held) store = hold_files(memory, {"shard"}, {}).value().store;
  PartBuilder part({.format = "tar", .shard_bytes = 65536});
  for (const uint64_t offset : {0u, 100u, 60000u}) {
    part.add_extent(part.field("data"), {.offset = offset, .stored = 100});
    part.end_sample("key");
  }
  const PartPointer made = part.finish().value();
  IndexedParts parts{
      .shards = ShardTable("tar"), .schema = made->head().schema, .store = store, .parts = {made}};
  const std::vector<uint32_t> blocks{3};
  EXPECT_TRUE(parts.shards
                  .add({.name = "shard",
                        .place = "shard",
                        .bytes = 65536,
                        .samples = 3,
                        .block_samples = blocks,
                        .block_bytes = 300})
                  .ok());
  return std::make_shared<const IndexedSource>(std::move(parts));
}

class GatherTest : public ::testing::Test {
 protected:
  void read(std::initializer_list<uint64_t> samples, bool with_pool) {
    gather_.clear();
    for (const uint64_t sample : samples)
      ASSERT_TRUE(gather_.add(*source_, sample, fields_, Key(0), false).ok());
    gather_.plan_reads({.pool = with_pool ? pool_.get() : nullptr}, &units_);
    read_now(gather_, units_);
  }
  static int first_byte(const SharedBuffer& buffer) {
    return std::to_integer<int>(buffer->bytes()[0]);
  }

  const std::shared_ptr<const Source> source_ = three_values();
  const std::vector<uint32_t> fields_{0};
  const std::shared_ptr<BufferPool> pool_ = BufferPool::make(1 << 20);
  UnitCache units_;
  Gather gather_;
};

TEST_F(GatherTest, a_value_that_was_read_alone_is_handed_over) {
  read({1, 2}, true);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const SharedBuffer whole = gather_.take(i, 0);
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(whole->size(), 100u);
    EXPECT_EQ(first_byte(whole), i == 0 ? 1 : 600 % 256);
    EXPECT_EQ(gather_.take(i, 0), nullptr) << "twice";
  }
}

TEST_F(GatherTest, neighbours_that_were_read_at_once_stay_where_they_are) {
  read({0, 1}, true);
  ASSERT_EQ(gather_.ranges().size(), 1u);
  EXPECT_EQ(gather_.take(0, 0), nullptr);
  EXPECT_EQ(std::to_integer<int>(gather_.value(1, 0).value()[0]), 1);
}

TEST_F(GatherTest, the_same_sample_twice_is_read_once_and_handed_to_nobody) {
  read({2, 2}, true);
  ASSERT_EQ(gather_.ranges().size(), 1u);
  EXPECT_EQ(gather_.take(0, 0), nullptr);
  EXPECT_EQ(gather_.value(1, 0).value().size(), 100u);
}

TEST_F(GatherTest, without_a_pool_nothing_is_handed_over) {
  read({2}, false);
  EXPECT_EQ(gather_.take(0, 0), nullptr);
  EXPECT_EQ(gather_.value(0, 0).value().size(), 100u);
}

TEST_F(GatherTest, what_a_store_holds_is_not_read) {
  const auto held = three_values(true);
  for (const uint64_t sample : {1u, 2u})
    ASSERT_TRUE(gather_.add(*held, sample, fields_, Key(0), false).ok());
  gather_.plan_reads({}, &units_);
  EXPECT_EQ(gather_.ranges_to_read(), 0u);
  EXPECT_EQ(gather_.bytes_to_read(0), 0u);
  read_now(gather_, units_);
  EXPECT_EQ(std::to_integer<int>(gather_.value(1, 0).value()[0]), 600 % 256);
  EXPECT_EQ(gather_.value(0, 0).value().data(),
            held->store().pin("shard", 100, 100)->bytes().data());

  // What becomes the user's gets memory of its own.
  gather_.clear();
  ASSERT_TRUE(gather_.add(*held, 1, fields_, Key(0), false).ok());
  gather_.plan_reads({.pool = pool_.get()}, &units_);
  EXPECT_EQ(gather_.ranges_to_read(), 1u);
}

TEST_F(GatherTest, memory_is_lent_to_what_is_read_and_taken_back) {
  ASSERT_TRUE(gather_.add(*source_, 0, fields_, Key(0), false).ok());
  ASSERT_TRUE(gather_.add(*source_, 2, fields_, Key(0), false).ok());
  gather_.plan_reads({}, &units_);
  ASSERT_EQ(gather_.ranges().size(), 2u);
  std::vector<Buffer> warm(1);
  warm[0].resize(4096);
  const std::byte* lent = warm[0].data();
  gather_.lend(warm);
  EXPECT_TRUE(warm.empty());
  read_now(gather_, units_);
  EXPECT_EQ(gather_.value(0, 0).value().data(), lent);
  EXPECT_EQ(std::to_integer<int>(gather_.value(1, 0).value()[0]), 600 % 256);
  gather_.take_back(warm);
  ASSERT_EQ(warm.size(), 2u);
  EXPECT_EQ(warm[1].data(), lent) << "the first of the next chunk";
}

// Chunks that wait for their grant hold units too: one that fails before their turn comes must not
// be read once more into the memory that others look at.
TEST_F(GatherTest, who_holds_a_unit_that_failed_sees_the_failure) {
  const Unit unit{.file = 0, .offset = 0, .stored_bytes = 100, .decoded_bytes = 100};
  const auto first = units_.pin(*source_, unit);
  const auto second = units_.pin(*source_, unit);
  ASSERT_EQ(first, second);
  bool must_read = false;
  bool heard = false;
  ASSERT_TRUE(units_.when_ready(first, must_read, [&heard] { heard = true; }));
  ASSERT_TRUE(must_read);
  first->status = corrupt("damaged");
  units_.finish(first);
  EXPECT_TRUE(heard);

  EXPECT_FALSE(units_.when_ready(second, must_read, [] {}));
  EXPECT_FALSE(must_read);

  const auto third = units_.pin(*source_, unit);
  EXPECT_NE(third, first);
  ASSERT_TRUE(units_.when_ready(third, must_read, [] {}));
  EXPECT_TRUE(must_read);
  // It stands in the way of nobody that another has begun anew.
  bool other = false;
  EXPECT_FALSE(units_.when_ready(second, other, [] {}));
  EXPECT_FALSE(other);
  units_.finish(third);
  EXPECT_EQ(units_.pin(*source_, unit), third);
}

}  // namespace
}  // namespace headrace
