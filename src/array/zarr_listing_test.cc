// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_listing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "array/zarr_shards.h"
#include "base/crc32c.h"
#include "storage/open_store.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

using Files = std::vector<ZarrFile>;

// Each job on a thread of its own, in no order.
Status on_threads(size_t count, const std::function<Status(size_t)>& job) {
  std::vector<Status> statuses(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&statuses, &job, i] { statuses[i] = job(i); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses)
    if (!status.ok()) return status;
  return {};
}

Files list(const TestFolder& f, const ZarrKeys& keys) {
  const auto found = list_zarr_chunks(*open_store("/").value().store, f.path(), keys, on_threads);
  EXPECT_TRUE(found.ok()) << found.status().text();
  return found.ok() ? found.value() : Files();
}

TEST(ZarrListing, keys_are_those_of_both_versions) {
  EXPECT_EQ(zarr_key({{20, 3}, "c", '/'}, 59), "c/19/2");
  EXPECT_EQ(zarr_key({{20, 3}, "", '.'}, 58), "19.1");
  EXPECT_EQ(zarr_key({{20, 3}, "c", '.'}, 0), "c.0.0");
  EXPECT_EQ(zarr_key({{}, "", '.'}, 0), "0");
  EXPECT_EQ(zarr_key({{}, "c", '/'}, 0), "c");
}

TEST(ZarrListing, every_key_is_found_with_its_size) {
  for (const Extents& grid : {Extents{}, {7}, {3, 2}, {4, 11}, {2, 3, 4}, {2, 2, 9}, {1, 1, 1, 1}})
    for (const std::string lead : {"", "c"})
      for (const char separator : {'.', '/'}) {
        const ZarrKeys keys{grid, lead, separator};
        const TestFolder f;
        f.put("zarr.json", "{}");
        Files expected;
        const auto count = static_cast<uint64_t>(elements_in(grid));
        for (uint64_t chunk = 0; chunk < count; ++chunk) {
          if (chunk % 3 == 1) continue;
          f.put(zarr_key(keys, chunk), std::string(chunk, 'x'));
          expected.push_back({chunk, chunk});
        }
        EXPECT_EQ(list(f, keys), expected) << zarr_key(keys, count - 1);
      }
}

TEST(ZarrListing, other_names_are_passed_over) {
  const ZarrKeys flat{{3, 12}, "", '.'};
  const TestFolder f;
  f.put("1.10", "yes");
  for (const char* name : {".zarray",     ".zattrs",  "1",     "1.",
                           ".1",          "1.10.0",   "01.1",  "1.01",
                           "+1.1",        "-1.1",     "3.0",   "0.12",
                           "1.1.partial", "1.1~",     "1 .1",  "0.99999999999999999999",
                           "1.\xff",      "\xff\xfe", "c.1.1", "__MACOSX/1.1"})
    f.put(name, "no");
  std::filesystem::create_directories(f / "2.2");  // a folder is no chunk
  EXPECT_EQ(list(f, flat), (Files{{22, 3}}));

  for (const int64_t last : {2, 12}) {
    const ZarrKeys nested{{3, last}, "c", '/'};
    const TestFolder g;
    g.put("c/1/1", "yes");
    for (const char* name :
         {"1/1", "c/x", "c/1/1.tmp", "c/01/1", "c/1/01", "c/3/0", "c/1/12", "c/\xff/1", "c/1/\xff",
          "c/0", "__MACOSX/c/1/1", "zarr.json", "c/1/-1"})
      g.put(name, "no");
    std::filesystem::create_directories(g / "c/1/0");
    EXPECT_EQ(list(g, nested), (Files{{static_cast<uint64_t>(last) + 1, 3}})) << last;
  }
}

TEST(ZarrListing, an_array_without_chunks_has_none) {
  const TestFolder f;
  EXPECT_EQ(list(f, {{5, 5}, "c", '/'}), Files());
  EXPECT_EQ(list(f, {{0, 5}, "", '.'}), Files());
  f.put("c", "a file where a folder is wanted");
  EXPECT_EQ(list(f, {{5, 5}, "c", '/'}), Files());
}

TEST(ZarrListing, links_are_followed_and_loops_refused) {
  const ZarrKeys keys{{4, 9}, "c", '/'};
  const TestFolder elsewhere;
  elsewhere.put("2", "12");
  const TestFolder f;
  f.put("c/0/1", "1");
  std::filesystem::create_directory_symlink(elsewhere.path(), f / "c/3");
  std::filesystem::create_symlink(elsewhere / "2", f / "c/0/5");
  std::filesystem::create_symlink("nowhere", f / "c/0/6");
  std::filesystem::create_symlink("7", f / "c/0/7");  // itself
  EXPECT_EQ(list(f, keys), (Files{{1, 1}, {5, 2}, {6, 0}, {7, 0}, {29, 2}}));

  std::filesystem::create_directory_symlink(".", f / "c/1");
  const auto found = list_zarr_chunks(*open_store("/").value().store, f.path(), keys, on_threads);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::kCorrupt);
  EXPECT_NE(found.status().text().find("c/1: the folder is a link to one above it"),
            std::string::npos)
      << found.status().text();
}

// Many loops in an array of many axes: every level would be listed again and again.
TEST(ZarrListing, loops_of_many_axes_do_not_hang) {
  const TestFolder f;
  std::filesystem::create_directories(f / "c");
  for (int i = 0; i < 8; ++i)
    std::filesystem::create_directory_symlink(".", f / ("c/" + std::to_string(i)));
  EXPECT_FALSE(list_zarr_chunks(*open_store("/").value().store, f.path(), {Extents(9, 8), "c", '/'},
                                on_threads)
                   .ok());
}

std::string number(uint64_t n) {
  return std::string(reinterpret_cast<const char*>(&n), 8);
}

// Shards of 2 × 2 chunks, of which there are 3 × 3; the first shard holds two, the last one.
class ZarrShards : public ::testing::Test {
 protected:
  std::string shard(const std::vector<std::pair<uint64_t, uint64_t>>& rows) const {
    std::string index;
    for (const auto& [offset, bytes] : rows) index += number(offset) + number(bytes);
    const uint32_t sum = crc32c(as_bytes(index));
    if (form_.is_checked) index += std::string(reinterpret_cast<const char*>(&sum), 4);
    const std::string data = "0123456789";
    return form_.at_start ? index + data : data + index;
  }
  Result<std::vector<ChunkPlace>> read(const std::vector<std::string>& shards) {
    std::vector<std::string> files;
    for (size_t i = 0; i < shards.size(); ++i)
      files.push_back(f_.put("c/" + std::to_string(i), shards[i]));
    const Files found{{0, shards[0].size()}, {3, shards[1].size()}};
    return read_shard_indexes(form_, found, files, *TestFolder::store(), on_threads);
  }

  static constexpr uint64_t kNone = ~uint64_t{0};
  TestFolder f_;
  ShardForm form_{.shards = {2, 2}, .per_shard = {2, 2}, .chunks = {3, 3}};
};

TEST_F(ZarrShards, places_are_those_of_the_indexes) {
  for (const bool at_start : {false, true})
    for (const bool is_checked : {false, true}) {
      form_.at_start = at_start;
      form_.is_checked = is_checked;
      // Row 1 of the last shard lies past the end of the grid.
      const auto places = read({shard({{0, 4}, {kNone, kNone}, {kNone, kNone}, {4, 6}}),
                                shard({{7, 2}, {1, 1}, {kNone, kNone}, {kNone, kNone}})});
      ASSERT_TRUE(places.ok()) << places.status().text();
      ASSERT_EQ(places.value().size(), 9u);
      for (size_t chunk = 0; chunk < 9; ++chunk) {
        const ChunkPlace& place = places.value()[chunk];
        const std::vector<uint64_t> is{place.file, place.offset, place.stored};
        const std::vector<uint64_t> expected = chunk == 0   ? std::vector<uint64_t>{0, 0, 4}
                                               : chunk == 4 ? std::vector<uint64_t>{0, 4, 6}
                                               : chunk == 8 ? std::vector<uint64_t>{1, 7, 2}
                                                            : std::vector<uint64_t>{0, 0, 0};
        EXPECT_EQ(is, expected) << chunk;
      }
    }
}

TEST_F(ZarrShards, damage_names_file_and_place) {
  const std::vector<std::pair<uint64_t, uint64_t>> good(4, {kNone, kNone});
  const auto fails = [&](const std::string& second, std::string_view words) {
    const auto places = read({shard(good), second});
    ASSERT_FALSE(places.ok()) << words;
    EXPECT_EQ(places.status().code(), Code::kCorrupt);
    EXPECT_NE(places.status().text().find(words), std::string::npos) << places.status().text();
    EXPECT_NE(places.status().text().find("c/1"), std::string::npos) << places.status().text();
  };
  fails("", "shorter than the index");
  fails("short", "shorter than the index");
  fails(shard({{1000, 4}, good[0], good[0], good[0]}), "past the end");
  fails(shard({{1, kNone - 1}, good[0], good[0], good[0]}), "past the end");
  std::string flipped = shard(good);
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  fails(flipped, "checksum of the shard's index is wrong");
  form_.per_shard = {int64_t{1} << 40, int64_t{1} << 40};
  form_.shards = {1, 1};
  EXPECT_FALSE(read_shard_indexes(form_, {{0, 100}}, {f_.put("x", std::string(100, 'x'))},
                                  *TestFolder::store(), on_threads)
                   .ok());
}

}  // namespace
}  // namespace headrace
