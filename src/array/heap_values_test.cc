// SPDX-License-Identifier: Apache-2.0
#include "array/heap_values.h"

#include <gtest/gtest.h>

#include "array/heap_fixture.h"
#include "base/rng.h"
#include "storage/memory.h"

namespace headrace {
namespace {

using Table = Result<std::shared_ptr<const ValueTable>>;

// Counts what is read.  One thread at a time.
class CountingStore final : public StoreWrapper {
 public:
  explicit CountingStore(ByteList file) : StoreWrapper(holding(std::move(file))) {}
  void read(std::span<ReadRequest> requests) const override {
    reads += requests.size();
    for (const ReadRequest& r : requests) bytes += r.length;
    inner().read(requests);
  }

  mutable size_t reads = 0;
  mutable uint64_t bytes = 0;

 private:
  static std::shared_ptr<const Store> holding(ByteList file) {
    auto store = std::make_shared<MemoryStore>();
    store->put("f", std::move(file));
    return store;
  }
};

Table read_table(const HeapValues& values, const ByteList& file) {
  const CountingStore store(file);
  return read_heap_values(values, {"f"}, store, run_in_turn);
}

std::string text_of(const ByteList& file, const ValueExtent& extent) {
  return std::string(as_text(Bytes(file).subspan(extent.offset, extent.bytes)));
}

// What is said of the only value, which is not found.
std::string complaint(HeapWriter& writer) {
  ByteList file;
  const HeapValues values = writer.finish(file);
  const Table table = read_table(values, file);
  if (!table.ok()) return table.status().text();
  EXPECT_EQ(table.value()->damaged.size(), 1u);
  EXPECT_EQ(table.value()->damaged.begin()->second.code(), Code::kCorrupt);
  return table.value()->damaged.begin()->second.text();
}

TEST(HeapValues, finds_values_of_every_form) {
  for (const uint32_t bytes : {2u, 4u, 8u})
    for (const uint64_t base : {0u, 512u}) {
      HeapWriter writer({.address_bytes = bytes, .size_bytes = bytes, .base = base});
      const uint64_t first = writer.add({"one", "", "three is longer"}, 64);
      const uint64_t second = writer.add({std::string(3000, 'x')});
      writer.refer(3000, second, 1);
      writer.refer(15, first, 3);
      writer.refer(3, first, 1);
      writer.refer(0, 0, 0);
      writer.refer(0, first, 2);
      writer.refer(5, bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1, 1);
      writer.refer(2, first, 1);  // a value may be shorter than its object
      ByteList file;
      const HeapValues values = writer.finish(file);
      const Table table = read_table(values, file);
      ASSERT_TRUE(table.ok()) << table.status().text();
      EXPECT_TRUE(table.value()->damaged.empty());
      std::vector<std::string> got;
      for (const ValueExtent& e : table.value()->extents) got.push_back(text_of(file, e));
      const std::vector<std::string> want = {
          std::string(3000, 'x'), "three is longer", "one", "", "", "", "on"};
      EXPECT_EQ(got, want);
      EXPECT_EQ(table.value()->total_bytes, 3020u);
    }
}

TEST(HeapValues, elements_count_in_items) {
  HeapWriter writer;
  const uint64_t at = writer.add({"12345678"});
  writer.refer(2, at, 1);
  ByteList file;
  HeapValues values = writer.finish(file);
  values.item_bytes = 4;
  EXPECT_EQ(read_table(values, file).value()->extents[0].bytes, 8u);
  values.item_bytes = 8;
  EXPECT_NE(read_table(values, file).value()->damaged.at(0).text().find("shorter"),
            std::string::npos);
}

TEST(HeapValues, neighbours_are_read_together_and_lone_ones_little) {
  HeapWriter near;
  for (int i = 0; i < 2000; ++i) near.refer(8, near.add({"12345678"}, 200), 1);
  ByteList file;
  HeapValues values = near.finish(file);
  CountingStore store(file);
  ASSERT_TRUE(read_heap_values(values, {"f"}, store, run_in_turn).ok());
  EXPECT_LE(store.reads, 3 + file.size() / (100 << 10));
  HeapWriter far;
  for (int i = 0; i < 20; ++i) far.refer(200000, far.add({std::string(200000, 'x')}), 1);
  values = far.finish(file);
  CountingStore lone(file);
  ASSERT_TRUE(read_heap_values(values, {"f"}, lone, run_in_turn).ok());
  EXPECT_LE(lone.bytes, 20u * 4096 + 20 * 16);
}

TEST(HeapValues, what_is_wrong_is_said_with_its_address) {
  const auto one = [](const std::function<void(HeapWriter&, uint64_t)>& change) {
    HeapWriter writer;
    const uint64_t at = writer.add({"12345678"}, 32);
    change(writer, at);
    return complaint(writer);
  };
  const auto has = [](const std::string& text, std::string_view words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  has(one([](HeapWriter& w, uint64_t) { w.refer(1, 1 << 20, 1); }), "past the end of the file");
  has(one([](HeapWriter& w, uint64_t) { w.refer(1, ~uint64_t{0} - 1, 1); }), "past the end");
  has(one([](HeapWriter& w, uint64_t at) { w.refer(1, at + 8, 1); }), "there is none");
  has(one([](HeapWriter& w, uint64_t at) { w.refer(1, at, 7); }), "no object 7");
  has(one([](HeapWriter& w, uint64_t at) { w.refer(9, at, 1); }), "shorter");
  has(one([](HeapWriter& w, uint64_t at) {
        w.patch(at + 4, 2, 1);
        w.refer(1, at, 1);
      }),
      "offset 8: 'v', value 0: global heap: a collection of version 2");
  for (const uint64_t size : {uint64_t{0}, uint64_t{15}, uint64_t{1} << 40, ~uint64_t{0}})
    has(one([size](HeapWriter& w, uint64_t at) {
          w.patch(at + 8, size, 8);
          w.refer(1, at, 1);
        }),
        "a collection of");
  for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 7})
    has(one([size](HeapWriter& w, uint64_t at) {
          w.patch(at + 24, size, 8);
          w.refer(1, at, 1);
        }),
        "object 1 of");
}

TEST(HeapValues, collections_do_not_overlap) {
  HeapWriter writer;
  const uint64_t first = writer.add({"12345678", "x"});
  const uint64_t second = writer.add({"12345678"});
  writer.patch(first + 8, 500, 8);
  writer.refer(1, first, 2);
  writer.refer(1, second, 1);
  ByteList file;
  const HeapValues values = writer.finish(file);
  const Table table = read_table(values, file);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value()->damaged.count(0), 1u);
  EXPECT_EQ(table.value()->damaged.count(1), 0u);
  EXPECT_EQ(text_of(file, table.value()->extents[1]), "1");
}

TEST(HeapValues, many_lost_values_are_an_error) {
  HeapWriter writer;
  for (int i = 0; i < 1100; ++i) writer.refer(1, 8, 1);
  EXPECT_NE(complaint(writer).find("more than 1000"), std::string::npos);
}

TEST(HeapValues, no_more_values_than_the_file_could_hold) {
  HeapWriter writer;
  writer.refer(1, writer.add({"x"}), 1);
  ByteList file;
  HeapValues values = writer.finish(file);
  values.references.shape[0] = int64_t{1} << 40;
  values.references.chunk[0] = int64_t{1} << 40;
  const Table table = read_table(values, file);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), Code::kCorrupt);
}

TEST(HeapValues, damage_anywhere_is_an_error_or_an_extent_of_the_file) {
  HeapWriter writer({.address_bytes = 4, .size_bytes = 4});
  const uint64_t at = writer.add({"one", "two", "three", "four"}, 40);
  const uint64_t other = writer.add({"five"});
  for (uint64_t i = 1; i <= 4; ++i) writer.refer(3, at, i);
  writer.refer(4, other, 1);
  ByteList whole;
  const HeapValues values = writer.finish(whole);
  const auto check = [&values](const ByteList& file) {
    HeapValues now = values;
    now.form.file_bytes = file.size();
    const Table table = read_table(now, file);
    if (!table.ok()) return;
    for (const ValueExtent& e : table.value()->extents)
      ASSERT_TRUE(e.offset <= file.size() && e.bytes <= file.size() - e.offset);
  };
  for (size_t cut = 0; cut < whole.size(); ++cut)
    check(ByteList(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)));
  for (size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      ByteList file = whole;
      file[i] ^= static_cast<std::byte>(1 << bit);
      check(file);
    }
}

// Each object that has the number of many values, again and again, must not look at all of them.
TEST(HeapValues, a_number_that_comes_often_takes_no_time) {
  constexpr uint64_t kObjects = 200'000;
  constexpr uint64_t kObjectBytes = 24;  // a head of 16, one byte, filled up to 8
  HeapWriter writer;
  const uint64_t address = writer.add(std::vector<std::string>(kObjects, "x"));
  for (uint64_t i = 0; i < kObjects; ++i) {
    writer.patch(address + 16 + i * kObjectBytes, 1, 2);
    writer.refer(1, address, 1);
  }
  writer.refer(1, address, 2);  // is nowhere: the walk goes on to the end
  ByteList file;
  const HeapValues values = writer.finish(file);
  const Table table = read_table(values, file);
  ASSERT_TRUE(table.ok()) << table.status().text();
  EXPECT_EQ(table.value()->damaged.size(), 1u);
  EXPECT_EQ(table.value()->extents[0].offset, address + 32);
  EXPECT_EQ(table.value()->extents[kObjects - 1].offset, address + 32);
}

}  // namespace
}  // namespace headrace
