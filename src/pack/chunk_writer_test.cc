// SPDX-License-Identifier: Apache-2.0
#include "pack/chunk_writer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/crc32c.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

// 5×6 of u8, numbered from 1 on.
std::vector<std::byte> numbered(size_t n) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i + 1);
  return out;
}

ArrayTarget target() {
  return {.shape = {5, 6}, .chunk = {2, 4}, .fill = {std::byte{0}}};
}

std::vector<int> ints(Bytes bytes) {
  std::vector<int> out;
  for (const std::byte b : bytes) out.push_back(static_cast<int>(b));
  return out;
}

TEST(chunk_writer, chunks_at_the_edge_are_padded_with_the_fill) {
  ArrayTarget t = target();
  t.fill = {std::byte{99}};
  const auto chunks = encode_chunks(t, {{0, 0}, {5, 6}}, numbered(30), 3).value();
  ASSERT_EQ(chunks.size(), 6u);
  EXPECT_EQ(chunks[0].at, (Extents{0, 0}));
  EXPECT_EQ(ints(chunks[0].bytes.bytes()), (std::vector{1, 2, 3, 4, 7, 8, 9, 10}));
  EXPECT_EQ(ints(chunks[5].bytes.bytes()), (std::vector{29, 30, 99, 99, 99, 99, 99, 99}));
}

TEST(chunk_writer, slabs_give_the_chunks_that_the_whole_gives) {
  const std::vector<std::byte> data = numbered(30);
  const auto whole = encode_chunks(target(), {{0, 0}, {5, 6}}, data, 1).value();
  const auto rest = encode_chunks(target(), {{2, 0}, {3, 6}}, Bytes(data).subspan(12), 1).value();
  ASSERT_EQ(rest.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rest[i].at, whole[i + 2].at);
    EXPECT_EQ(ints(rest[i].bytes.bytes()), ints(whole[i + 2].bytes.bytes()));
  }
}

TEST(chunk_writer, chunks_of_nothing_but_the_fill_are_marked) {
  std::vector<std::byte> data(30, std::byte{0});
  data[0] = std::byte{1};
  const auto chunks = encode_chunks(target(), {{0, 0}, {5, 6}}, data, 1).value();
  for (size_t i = 0; i < chunks.size(); ++i) EXPECT_EQ(chunks[i].is_fill, i != 0);
}

TEST(chunk_writer, shards_have_an_index_that_says_where_chunks_lie) {
  TestFolder f;
  ArrayTarget t = target();
  t.shard = {4, 8};
  const auto files = write_chunk_files(t, f / "", "x", {{0, 0}, {5, 6}}, numbered(30), 2).value();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1].name, "x/c/1/0");
  const std::string first = TestFolder::read(f / files[0].name);
  const Bytes bytes = as_bytes(first);
  ASSERT_EQ(bytes.size(), 4 * 8 + 4 * 16 + 4u);
  EXPECT_EQ(files[0].bytes, bytes.size());
  EXPECT_EQ(files[0].crc32c, crc32c(bytes));
  const Bytes index = bytes.subspan(32, 64);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(load_le<uint64_t>(index.subspan(16 * i)), 8 * i);
    EXPECT_EQ(load_le<uint64_t>(index.subspan(16 * i + 8)), 8u);
  }
  EXPECT_EQ(load_le<uint32_t>(bytes.subspan(96)), crc32c(index));
  // The second shard lies half outside: those chunks are not there.
  const std::string second = TestFolder::read(f / files[1].name);
  const Bytes outside = as_bytes(second).subspan(16 + 32);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(load_le<uint64_t>(outside.subspan(8 * i)), ~uint64_t{0});
}

TEST(chunk_writer, a_slab_that_cuts_a_chunk_is_refused) {
  EXPECT_FALSE(encode_chunks(target(), {{1, 0}, {4, 6}}, numbered(24), 1).ok());
  EXPECT_FALSE(encode_chunks(target(), {{0, 0}, {3, 6}}, numbered(18), 1).ok());
  EXPECT_FALSE(encode_chunks(target(), {{0, 0}, {5, 6}}, numbered(29), 1).ok());
  ArrayTarget t = target();
  t.shard = {3, 8};
  EXPECT_FALSE(encode_chunks(t, {{0, 0}, {5, 6}}, numbered(30), 1).ok());
}

TEST(chunk_writer, one_number_is_an_array_too) {
  TestFolder f;
  const ArrayTarget t{.shape = {}, .chunk = {}, .fill = {std::byte{0}}};
  const auto files = write_chunk_files(t, f / "", "x", {{}, {}}, numbered(1), 1).value();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "x/c");
}

}  // namespace
}  // namespace headrace
