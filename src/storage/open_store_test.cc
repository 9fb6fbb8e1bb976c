// SPDX-License-Identifier: Apache-2.0
#include "storage/open_store.h"

#include <gtest/gtest.h>

#include "storage/memory.h"
#include "storage/paths.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

TEST(OpenStore, who_opens_anew_sees_the_file_that_lies_there_now) {
  const TestFolder folder;
  const std::string path = folder.put("f", "before");
  const OpenedUrl first = open_store(path).value();
  Buffer bytes;
  ASSERT_TRUE(first.store->read_at(path, 0, 6, bytes).ok());
  std::filesystem::remove(path);
  folder.put("f", "after!");
  ASSERT_TRUE(open_store(path).value().store->read_at(path, 0, 6, bytes).ok());
  EXPECT_EQ(as_text(bytes.bytes()), "after!");
}

TEST(OpenStore, paths_and_file_urls_are_local) {
  const TestFolder folder;
  const std::string path = folder.put("f", "content");
  const OpenedUrl plain = open_store(path).value();
  const OpenedUrl url = open_store("file://" + path).value();
  EXPECT_EQ(plain.path, url.path);
  EXPECT_EQ(url.path, path);
  EXPECT_EQ(as_text(url.store->read_all(url.path).value().bytes()), "content");
  EXPECT_EQ(open_store("relative/x").value().path, "relative/x");
  EXPECT_EQ(open_store("c:/not a scheme").value().path, "c:/not a scheme");
}

TEST(OpenStore, an_unknown_scheme_is_an_error_that_lists_the_known) {
  const Status s = open_store("gopher://host/x.tar").status();
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_NE(s.text().find("gopher://host/x.tar"), std::string::npos) << s.text();
  EXPECT_NE(s.text().find("file://"), std::string::npos) << s.text();
}

TEST(OpenStore, a_scheme_is_a_tests_own_while_it_lives) {
  const auto memory = std::make_shared<MemoryStore>();
  memory->put("testmem://bucket/x", "seven");
  {
    const ScopedStore scoped("testmem", memory);
    const OpenedUrl opened = open_store("testmem://bucket/x").value();
    EXPECT_EQ(opened.store, memory);
    EXPECT_EQ(as_text(opened.store->read_all(opened.path).value().bytes()), "seven");
  }
  EXPECT_EQ(open_store("testmem://bucket/x").status().code(), Code::kUnsupported);
}

TEST(OpenStore, a_data_set_lies_in_one_store) {
  const ScopedStore scoped("testmem", std::make_shared<MemoryStore>());
  const std::vector<std::string> local{"/a", "file:///b"};
  const std::vector<std::string> mixed{"/a", "testmem://b"};
  EXPECT_TRUE(store_of_all(local).ok());
  EXPECT_EQ(store_of_all(mixed).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_of_all({}).status().code(), Code::kInvalidArgument);
}

TEST(Paths, are_joined_and_taken_apart_with_their_schemes) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(join_path("s3://", "bucket"), "s3://bucket");
  EXPECT_EQ(join_path("s3://bucket", "k/x"), "s3://bucket/k/x");
  EXPECT_EQ(join_path("/a", "s3://bucket/x"), "s3://bucket/x");
  EXPECT_EQ(parent_folder("s3://bucket/k/x"), "s3://bucket/k");
  EXPECT_EQ(parent_folder("s3://bucket"), "s3://");
  EXPECT_EQ(parent_folder("/a"), "/");
  EXPECT_EQ(parent_folder("/a/b"), "/a");
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("a"), "");
  EXPECT_EQ(base_name("s3://bucket/k/x"), "x");
  EXPECT_EQ(scheme_of("s3://bucket"), "s3");
  EXPECT_EQ(scheme_of("/a/s3://b"), "");
  EXPECT_EQ(scheme_of("a/b"), "");
  EXPECT_EQ(scheme_of("://x"), "");
  EXPECT_TRUE(is_absolute("s3://x") && is_absolute("/x") && !is_absolute("x"));
}

}  // namespace
}  // namespace headrace
