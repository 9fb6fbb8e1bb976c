// SPDX-License-Identifier: Apache-2.0
#include "storage/fault.h"

#include <gtest/gtest.h>

#include "storage/memory.h"

namespace headrace {
namespace {

std::shared_ptr<MemoryStore> two_files() {
  auto store = std::make_shared<MemoryStore>();
  store->put("a", "0123456789");
  store->put("b", "abcdefghij");
  return store;
}

TEST(FaultStore, fails_the_nth_read_and_no_other) {
  FaultStore store(two_files());
  store.add({.path = "a", .fail_read = 2, .code = Code::kUnavailable});
  Buffer out;
  EXPECT_TRUE(store.read_at("a", 0, 1, out).ok());
  EXPECT_TRUE(store.read_at("b", 0, 1, out).ok());
  EXPECT_EQ(store.read_at("a", 5, 1, out).code(), Code::kUnavailable);
  EXPECT_TRUE(store.read_at("a", 0, 1, out).ok());
  EXPECT_EQ(store.reads(), 4u);
}

TEST(FaultStore, fails_all_from_the_nth_on) {
  FaultStore store(two_files());
  store.add({.fail_read = 2, .and_all_later = true, .code = Code::kPermission});
  EXPECT_TRUE(store.read_all("a").ok());
  EXPECT_EQ(store.read_all("a").status().code(), Code::kPermission);
  EXPECT_EQ(store.read_all("b").status().code(), Code::kPermission);
}

TEST(FaultStore, a_truncated_file_ends_early_for_reads_and_stat) {
  FaultStore store(two_files());
  store.add({.path = "a", .truncate_at = 4});
  Buffer out;
  EXPECT_TRUE(store.read_at("a", 0, 4, out).ok());
  EXPECT_EQ(store.read_at("a", 2, 3, out).code(), Code::kCorrupt);
  EXPECT_EQ(as_text(store.read_all("a").value().bytes()), "0123");
  EXPECT_EQ(store.stat("a").value().bytes, 4u);
  EXPECT_EQ(store.stat("b").value().bytes, 10u);
}

TEST(FaultStore, flips_a_bit_wherever_it_is_read_from) {
  FaultStore store(two_files());
  store.add({.path = "a", .flip_at = 3, .flip_mask = std::byte{1}});
  Buffer out;
  ASSERT_TRUE(store.read_at("a", 2, 3, out).ok());
  EXPECT_EQ(as_text(out.bytes()), "224");
  EXPECT_EQ(as_text(store.read_all("a").value().bytes()), "0122456789");
  ASSERT_TRUE(store.read_at("a", 4, 2, out).ok());
  EXPECT_EQ(as_text(out.bytes()), "45");
}

TEST(FaultStore, a_delayed_read_takes_its_time) {
  FaultStore store(two_files());
  store.add({.delay = std::chrono::milliseconds(5)});
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(store.read_all("a").ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace headrace
