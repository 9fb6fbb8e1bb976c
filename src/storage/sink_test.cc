// SPDX-License-Identifier: Apache-2.0
#include "storage/sink.h"

#include <gtest/gtest.h>

#include "storage/test_folder.h"

namespace headrace {
namespace {

size_t entries(const TestFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(FileSink, a_file_appears_only_when_closed) {
  const TestFolder folder;
  auto sink = file_sink(folder / "f").value();
  ASSERT_TRUE(sink->append(as_bytes("hello ")).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
  ASSERT_TRUE(sink->append(as_bytes("world")).ok());
  ASSERT_TRUE(sink->close().ok());
  EXPECT_EQ(TestFolder::read(folder / "f"), "hello world");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(FileSink, abandoned_leaves_nothing_and_keeps_the_old) {
  const TestFolder folder;
  folder.put("f", "old");
  {
    auto sink = file_sink(folder / "f").value();
    ASSERT_TRUE(sink->append(as_bytes("new")).ok());
    const std::string temporary =
        std::filesystem::directory_iterator(folder.path())->path().filename();
    EXPECT_TRUE(is_temporary_name(temporary) || temporary == "f");
    EXPECT_EQ(entries(folder), 2u);
  }
  EXPECT_EQ(TestFolder::read(folder / "f"), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(FileSink, large_and_small_pieces_keep_their_order) {
  const TestFolder folder;
  auto sink = file_sink(folder / "f").value();
  std::string expected;
  for (const size_t n :
       {size_t{10}, size_t{3} << 20, size_t{1}, (size_t{1} << 20) - 1, size_t{5}}) {
    const std::string piece(n, static_cast<char>('a' + n % 26));
    ASSERT_TRUE(sink->append(as_bytes(piece)).ok());
    expected += piece;
  }
  ASSERT_TRUE(sink->close().ok());
  EXPECT_EQ(TestFolder::read(folder / "f"), expected);
}

TEST(FileSink, an_unwritable_place_is_an_error_that_names_it) {
  const TestFolder folder;
  const std::string file = folder.put("f", "a file, no folder");
  const auto sink = file_sink(file + "/below");
  ASSERT_FALSE(sink.ok());
  EXPECT_EQ(sink.status().place().file, file + "/below");
}

TEST(MemorySink, collects) {
  std::vector<std::byte> out;
  auto sink = memory_sink(out);
  ASSERT_TRUE(sink->append(as_bytes("ab")).ok());
  ASSERT_TRUE(sink->append(as_bytes("c")).ok());
  ASSERT_TRUE(sink->close().ok());
  EXPECT_EQ(as_text(out), "abc");
}

}  // namespace
}  // namespace headrace
