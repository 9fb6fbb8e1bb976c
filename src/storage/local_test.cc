// SPDX-License-Identifier: Apache-2.0
#include "storage/local.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "storage/sink.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

std::string text(const Store& store, const std::string& path, uint64_t bytes) {
  Buffer out;
  const Status status = store.read_at(path, 0, bytes, out);
  return status.ok() ? std::string(as_text(out.bytes())) : status.text();
}

TEST(LocalStore, a_folder_read_as_a_file_is_the_callers_mistake) {
  const TestFolder folder;
  EXPECT_EQ(local_store()->read_all(folder.path()).status().code(), Code::kInvalidArgument);
}

TEST(LocalStore, a_file_that_shrank_is_corrupt_where_it_ends) {
  const TestFolder folder;
  const std::string path = folder.put("f", "0123456789");
  const auto store = local_store();
  Buffer out;
  ASSERT_TRUE(store->read_at(path, 0, 10, out).ok());
  std::filesystem::resize_file(path, 4);
  const Status s = store->read_at(path, 0, 10, out);
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_EQ(s.place().offset, 4);
  EXPECT_EQ(s.place().file, path);
}

TEST(LocalStore, a_link_to_a_folder_is_a_folder) {
  const TestFolder folder;
  folder.put("real/x", "x");
  std::filesystem::create_directory_symlink(folder / "real", folder / "link");
  EXPECT_TRUE(local_store()->list(folder.path()).value()[0].is_folder);
}

// The store outlives data sets and keeps descriptors: what was looked at is what is read.
TEST(LocalStore, a_file_that_was_replaced_is_read_anew_once_it_was_looked_at) {
  const TestFolder folder;
  const std::string path = folder.put("f", "old");
  const auto store = local_store();
  ASSERT_EQ(text(*store, path, 3), "old");
  ASSERT_TRUE(write_file(path, as_bytes("new")).ok());
  ASSERT_TRUE(store->stat(path).ok());
  EXPECT_EQ(text(*store, path, 3), "new");
  std::filesystem::remove(path);
  EXPECT_EQ(store->stat(path).status().code(), Code::kNotFound);
  Buffer out;
  EXPECT_EQ(store->read_at(path, 0, 3, out).code(), Code::kNotFound);
}

TEST(LocalStore, what_is_in_the_page_cache_is_resident_and_past_the_end_is_not) {
  const TestFolder folder;
  const std::string path = folder.put("f", "0123456789");
  const auto store = local_store();
  ASSERT_EQ(text(*store, path, 10), "0123456789");
  ReadRequest past{.path = path, .offset = 8, .length = 3};
  EXPECT_FALSE(store->read_if_resident(past));
  ReadRequest other{.path = path, .length = 3, .version = "1-1"};
  EXPECT_FALSE(store->read_if_resident(other));
  ReadRequest request{.path = path, .offset = 2, .length = 3};
  if (!store->read_if_resident(request)) GTEST_SKIP() << "a file system without RWF_NOWAIT";
  EXPECT_EQ(as_text(request.into.bytes()), "234");
}

TEST(LocalStore, a_disk_is_near_and_waits_in_the_caller) {
  const TestFolder folder;
  const StoreCost cost = local_store()->cost(folder.path());
  EXPECT_TRUE(cost.in_caller);
  EXPECT_FALSE(cost.is_remote());
  EXPECT_GT(cost.parallel_reads, 1u);
  EXPECT_FALSE(local_store()->cost("/nowhere/at/all").is_near());
}

}  // namespace
}  // namespace headrace
