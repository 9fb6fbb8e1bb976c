// SPDX-License-Identifier: Apache-2.0

#include "storage/cache/cache.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "storage/cache/checksum.h"
#include "storage/memory.h"
#include "storage/mixed.h"
#include "storage/open_store.h"
#include "storage/test_folder.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::vector<std::byte> content(size_t bytes, uint32_t seed = 1) {
  std::vector<std::byte> out(bytes);
  std::mt19937 random(seed);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

constexpr uint64_t kBig = (3 << 20) + 12345;

class Cache : public ::testing::Test {
 protected:
  Cache() {
    source_->put("mem://big", content(kBig));
    source_->put("mem://other", content(1 << 20, 2));
  }
  std::shared_ptr<const CacheStore> open(CacheOptions options = {}) {
    options.folder = folder_ / "cache";
    if (options.keep_free < 0) options.keep_free = 0;
    return CacheStore::make(source_, options).value();
  }
  static std::string read(const Store& store, uint64_t offset, uint64_t length,
                          const std::string& path = "mem://big") {
    Buffer out;
    const Status status = store.read_at(path, offset, length, out);
    EXPECT_TRUE(status.ok()) << status.text();
    return std::string(as_text(out.bytes()));
  }
  std::string wanted(uint64_t offset, uint64_t length) { return read(*source_, offset, length); }
  std::vector<fs::path> segments() {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache/data"))
      if (entry.is_regular_file()) out.push_back(entry.path());
    return out;
  }

  TestFolder folder_;
  std::shared_ptr<MemoryStore> source_ = std::make_shared<MemoryStore>();
};

TEST(Checksum, a_changed_byte_shows_wherever_it_is) {
  for (const size_t size : {1u, 7u, 8u, 31u, 32u, 33u, 100u, 65536u}) {
    std::vector<std::byte> data = content(size);
    const uint32_t sum = piece_checksum(data);
    EXPECT_EQ(sum, piece_checksum(data));
    for (size_t i = 0; i < size; i += 1 + size / 64) {
      data[i] ^= std::byte{1};
      EXPECT_NE(sum, piece_checksum(data));
      data[i] ^= std::byte{1};
    }
  }
}

TEST_F(Cache, the_second_read_does_not_ask_the_store) {
  const auto cache = open();
  EXPECT_EQ(read(*cache, 0, kBig), wanted(0, kBig));
  EXPECT_EQ(cache->counts().misses, 1u);
  EXPECT_EQ(cache->counts().fetched_bytes, kBig);
  EXPECT_EQ(cache->counts().filled_bytes, kBig);
  EXPECT_EQ(read(*cache, 12345, 2 << 20), wanted(12345, 2 << 20));
  EXPECT_EQ(cache->counts().hits, 1u);
  EXPECT_EQ(cache->counts().fetched_bytes, kBig);
}

// A list names files of this disk by their URLs too, beside those of servers.
TEST_F(Cache, a_read_of_a_server_is_handed_over_whatever_was_read_of_this_disk_before) {
  folder_.put("near", "0123456789");
  source_->put("far://bucket/a", content(1000));
  const auto silent = std::make_shared<SilentStore>(source_);
  const ScopedStore far("far", silent);
  const auto group = std::make_shared<ReadGroup>();
  const auto cache = CacheStore::make(std::make_shared<MixedStore>(StoreOptions{}),
                                      {.folder = folder_ / "cache", .keep_free = 0})
                         .value();
  EXPECT_EQ(read(*cache, 2, 3, "file://" + folder_.path() + "/near"), "234");
  std::promise<Status> done;
  ReadRequest request{
      .path = "far://bucket/a", .length = 10, .group = group, .done = [&](ReadRequest&& r) {
        done.set_value(std::move(r.status));
      }};
  const auto returned = std::async(std::launch::async, [&] { cache->read({&request, 1}); });
  const bool was_handed_over = returned.wait_for(5s) == std::future_status::ready;
  group->cancel();
  cache->cancel(*group);
  EXPECT_TRUE(was_handed_over);
  EXPECT_EQ(done.get_future().get().code(), Code::kCancelled);
}

TEST_F(Cache, a_file_of_this_disk_is_known_by_its_url) {
  folder_.put("near", "0123456789");
  const std::string url = "file://" + folder_.path() + "/near";
  const auto mixed = std::make_shared<MixedStore>(StoreOptions{});
  EXPECT_EQ(mixed->stat(url).value().path, url);
  const auto cache = CacheStore::make(mixed, {.folder = folder_ / "cache", .keep_free = 0}).value();
  EXPECT_EQ(read(*cache, 2, 3, url), "234");
  ReadRequest again{.path = url, .offset = 2, .length = 3};
  EXPECT_TRUE(cache->read_if_resident(again)) << "it is known, and nobody asks for its size again";
  EXPECT_EQ(as_text(again.into.bytes()), "234");
}

TEST_F(Cache, random_ranges_are_what_the_store_has) {
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    const auto cache = open();
    for (int i = 0; i < 40; ++i) {
      const uint64_t offset = i == 0 ? 0 : random() % kBig;
      const uint64_t length = i == 0 ? kBig : random() % (kBig - offset + 1);
      ASSERT_EQ(read(*cache, offset, length), wanted(offset, length)) << offset << ' ' << length;
    }
    if (round > 0) {
      EXPECT_EQ(cache->counts().fetched_bytes, 0u);
    }
  }
}

TEST_F(Cache, another_process_finds_what_one_has_written) {
  read(*open(), 0, kBig);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto cache = CacheStore::make(source_, {.folder = folder_ / "cache", .keep_free = 0});
    Buffer out;
    const bool ok = cache.ok() && cache.value()->read_at("mem://big", 99, 1 << 20, out).ok() &&
                    cache.value()->counts().fetched_bytes == 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Cache, a_file_that_changed_is_another_object) {
  auto cache = open();
  read(*cache, 0, kBig);
  source_->put("mem://big", content(kBig, 9));
  cache = open();
  EXPECT_EQ(read(*cache, 0, kBig), wanted(0, kBig));
  EXPECT_EQ(cache->counts().hits, 0u);
}

TEST_F(Cache, a_file_that_changes_while_it_is_read_is_refused_and_then_read_anew) {
  const auto cache = open();
  read(*cache, 0, 100);
  source_->put("mem://big", content(kBig, 9));
  Buffer out;
  EXPECT_EQ(cache->read_at("mem://big", 2 << 20, 100, out).code(), Code::kCorrupt);
  EXPECT_EQ(read(*cache, 2 << 20, 100), wanted(2 << 20, 100));
}

TEST_F(Cache, a_file_of_this_machine_that_is_touched_while_it_is_read_goes_on) {
  const auto mixed = std::make_shared<MixedStore>(StoreOptions{});
  for (const auto& [store, name] :
       {std::pair<std::shared_ptr<const Store>, std::string>{TestFolder::store(), ""},
        {mixed, "file://"}}) {
    const std::string path = folder_.put("data.bin", std::string(3 << 20, 'a'));
    const std::string url = name + path;
    const auto cache = CacheStore::make(store, {.folder = folder_ / "cache"}).value();
    read(*cache, 0, 100, url);
    const timespec later[2] = {{2'000'000'000, 0}, {2'000'000'000, 0}};
    ::utimensat(AT_FDCWD, path.c_str(), later, 0);
    EXPECT_EQ(read(*cache, 2 << 20, 100, url), std::string(100, 'a'));
    EXPECT_EQ(read(*cache, 2 << 20, 100, url), std::string(100, 'a'));
  }
}

TEST_F(Cache, a_damaged_block_is_read_again_from_the_store) {
  read(*open(), 0, kBig);
  for (const fs::path& file : segments()) {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(8192 + (1 << 20) + 77);
    out.put('x');
    out.put('y');
  }
  const auto cache = open();
  EXPECT_EQ(read(*cache, 0, kBig), wanted(0, kBig));
  EXPECT_EQ(cache->counts().damaged, 1u);
  EXPECT_GE(cache->counts().fetched_bytes, uint64_t{1} << 20);
  EXPECT_EQ(read(*cache, 0, kBig), wanted(0, kBig));
  EXPECT_EQ(read(*open(), 0, kBig), wanted(0, kBig));
  EXPECT_EQ(cache->take_notices().size(), 1u);
  EXPECT_TRUE(cache->take_notices().empty());
}

TEST_F(Cache, whatever_byte_of_a_file_is_damaged_or_cut_the_bytes_are_right) {
  source_->put("mem://small", content(5000));
  const std::string right = read(*source_, 0, 5000, "mem://small");
  read(*open(), 0, 5000, "mem://small");
  const fs::path file = segments().at(0);
  const std::string whole = TestFolder::read(file.string());
  for (size_t at = 0; at < whole.size(); at += at < 70 || (at > 4090 && at < 4170) ? 3 : 511) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    for (const std::string& written : {damaged, whole.substr(0, at)}) {
      fs::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << written;
      ASSERT_EQ(read(*open(), 0, 5000, "mem://small"), right) << at;
      ASSERT_EQ(read(*open(), 0, 5000, "mem://small"), right) << at;
    }
  }
}

TEST_F(Cache, a_cache_smaller_than_a_file_holds_a_part_and_keeps_to_its_size) {
  auto cache = open({.bytes = 1 << 20});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (uint64_t at = 0; at + 100'000 <= kBig; at += 100'000)
      ASSERT_EQ(read(*cache, at, 100'000), wanted(at, 100'000));
    uint64_t used = 0;
    for (const fs::path& file : segments()) {
      struct stat info{};
      ::stat(file.c_str(), &info);
      used += static_cast<uint64_t>(info.st_blocks) * 512;
    }
    EXPECT_LE(used, (1 << 20) + (400u << 10));  // and the heads of the files
  }
  EXPECT_GE(cache->counts().hits, 5u);  // what is there stays: in each epoch it is of use
  EXPECT_EQ(cache->counts().evicted_bytes, 0u);
}

TEST_F(Cache, it_keeps_to_its_size_when_more_than_that_is_asked_for_at_once) {
  const auto far = std::make_shared<LatencyStore>(source_, LatencyOptions{.latency = 20ms});
  const auto cache =
      CacheStore::make(far, {.folder = folder_ / "cache", .bytes = 1 << 20, .keep_free = 0})
          .value();
  std::atomic<size_t> done{0};
  std::vector<ReadRequest> requests;
  for (uint64_t at = 0; at + 1000 <= kBig; at += 64 << 10)
    requests.push_back({.path = "mem://big", .offset = at, .length = 1000, .done = [&](auto&&) {
                          ++done;
                          done.notify_one();
                        }});
  const size_t count = requests.size();
  cache->read(requests);
  for (size_t n = done.load(); n < count; n = done.load()) done.wait(n);
  cache->wait_until_written();
  EXPECT_LE(cache->counts().filled_bytes, uint64_t{1} << 20);
  EXPECT_GE(cache->counts().filled_bytes, uint64_t{1} << 19);
}

TEST_F(Cache, what_nobody_uses_makes_room_the_oldest_first) {
  {
    read(*open({.bytes = 2 << 20}), 0, 1 << 20, "mem://other");
  }
  for (const fs::path& file : segments()) {
    const timespec old[2] = {{1000, 0}, {1000, 0}};
    ::utimensat(AT_FDCWD, file.c_str(), old, 0);
  }
  const size_t before = segments().size();
  const auto cache = open({.bytes = 2 << 20});
  for (uint64_t at = 0; at < kBig; at += 100'000)
    read(*cache, at, std::min<uint64_t>(100'000, kBig - at));
  EXPECT_GE(before, 16u);
  EXPECT_GT(cache->counts().evicted_bytes, 0u);
  EXPECT_GT(cache->counts().filled_bytes, uint64_t{1} << 20);
}

TEST_F(Cache, the_free_space_that_is_asked_for_stays) {
  const auto cache = open({.keep_free = int64_t{1} << 60});
  EXPECT_EQ(read(*cache, 5, 1 << 20), wanted(5, 1 << 20));
  EXPECT_EQ(cache->counts().filled_bytes, 0u);
  EXPECT_EQ(cache->counts().fetched_bytes, uint64_t{1} << 20);  // ranges as they are, no blocks
  EXPECT_NE(cache->take_notices().at(0).find("full"), std::string::npos);
}

TEST_F(Cache, many_who_want_a_block_at_once_fetch_it_once) {
  const auto far = std::make_shared<LatencyStore>(source_, LatencyOptions{.latency = 20ms});
  const auto cache = CacheStore::make(far, {.folder = folder_ / "cache", .keep_free = 0}).value();
  std::vector<std::jthread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const uint64_t at = static_cast<uint64_t>(t) * 1000;
      if (read(*cache, at, 5000) != wanted(at, 5000)) ++bad;
    });
  threads.clear();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(cache->counts().fetched_bytes, uint64_t{1} << 20);
  cache->wait_until_written();
  EXPECT_EQ(cache->counts().filled_bytes, uint64_t{1} << 20);
}

TEST_F(Cache, a_failure_of_the_store_is_heard_and_does_not_stay) {
  const auto flaky = std::make_shared<FailLaterStore>(source_, FailLaterOptions{.fail_read = 1});
  const auto cache = CacheStore::make(flaky, {.folder = folder_ / "cache", .keep_free = 0}).value();
  Buffer out;
  EXPECT_EQ(cache->read_at("mem://big", 0, 10, out).code(), Code::kUnavailable);
  EXPECT_EQ(read(*cache, 0, 10), wanted(0, 10));
}

TEST_F(Cache, destroyed_it_completes_what_is_under_way) {
  const auto silent = std::make_shared<SilentStore>(source_);
  auto cache = CacheStore::make(silent, {.folder = folder_ / "cache", .keep_free = 0}).value();
  std::atomic<int> done{0};
  ReadRequest request{.path = "mem://big", .length = 10, .done = [&](ReadRequest&& r) {
                        EXPECT_EQ(r.status.code(), Code::kCancelled);
                        ++done;
                      }};
  cache->read({&request, 1});
  EXPECT_EQ(done, 0);
  cache = nullptr;
  EXPECT_EQ(done, 1);
}

TEST_F(Cache, when_all_is_there_it_costs_as_a_near_disk) {
  const auto far = std::make_shared<LatencyStore>(source_, LatencyOptions{.latency = 5ms});
  const CacheOptions options{.folder = folder_ / "cache", .keep_free = 0};
  auto cache = CacheStore::make(far, options).value();
  cache->expect_files({"mem://big"});
  EXPECT_FALSE(cache->cost("mem://big").is_near());
  read(*cache, 0, kBig);
  cache->wait_until_written();
  EXPECT_TRUE(cache->cost("mem://big").is_near());
  EXPECT_EQ(read(*cache, 3, 1 << 20), wanted(3, 1 << 20));
}

TEST_F(Cache, a_folder_of_other_things_is_refused_and_left_alone) {
  fs::create_directories(folder_ / "cache");
  folder_.put("cache/thesis.tex", "precious");
  const auto made = CacheStore::make(source_, {.folder = folder_ / "cache"});
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  EXPECT_NE(made.status().text().find("holds other files"), std::string::npos);
  EXPECT_FALSE(clear_cache(folder_ / "cache").ok());
  EXPECT_EQ(TestFolder::read(folder_ / "cache/thesis.tex"), "precious");
}

TEST_F(Cache, a_folder_that_others_may_write_or_own_is_refused) {
  fs::create_directories(folder_ / "cache");
  ::chmod((folder_ / "cache").c_str(), 0777);
  EXPECT_NE(CacheStore::make(source_, {.folder = folder_ / "cache"}).status().text().find("chmod"),
            std::string::npos);
  ::chmod((folder_ / "cache").c_str(), 0700);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown((folder_ / "cache").c_str(), 12345, 12345), 0);
  EXPECT_NE(CacheStore::make(source_, {.folder = folder_ / "cache"}).status().text().find("user"),
            std::string::npos);
}

TEST_F(Cache, clearing_removes_what_is_ours_alone) {
  read(*open(), 0, kBig);
  folder_.put("cache/notes.txt", "mine");
  folder_.put("cache/data/ab/precious.txt", "mine");
  EXPECT_GE(clear_cache(folder_ / "cache").value(), kBig);
  EXPECT_EQ(TestFolder::read(folder_ / "cache/notes.txt"), "mine");
  EXPECT_EQ(TestFolder::read(folder_ / "cache/data/ab/precious.txt"), "mine");
  fs::remove_all(folder_ / "cache");
  read(*open(), 0, kBig);
  EXPECT_GE(clear_cache(folder_ / "cache").value(), kBig);
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

TEST_F(Cache, listed_it_names_its_objects_and_verified_it_names_what_is_damaged) {
  read(*open(), 0, kBig);
  read(*open(), 0, 10, "mem://other");
  const auto objects = list_cache(folder_ / "cache").value();
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0].name, "mem://big");
  EXPECT_EQ(objects[0].object_bytes, kBig);
  EXPECT_GE(objects[0].cached_bytes, kBig);
  CacheCheck check = verify_cache(folder_ / "cache").value();
  EXPECT_EQ(check.blocks, 5u);
  EXPECT_TRUE(check.damaged.empty());
  std::fstream(segments().at(0), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(20000)
      .put('x')
      .put('y');
  check = verify_cache(folder_ / "cache").value();
  EXPECT_EQ(check.damaged.size(), 1u);
  EXPECT_EQ(segments().size(), 1u);
}

TEST_F(Cache, while_it_is_cleared_readers_read_on) {
  const auto cache = open();
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::jthread reader([&] {
    for (uint64_t i = 0; !stop; ++i)
      if (read(*cache, i % kBig, 1) != wanted(i % kBig, 1)) ++bad;
  });
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(2ms);
    (void)clear_cache(folder_ / "cache");
  }
  stop = true;
  reader.join();
  EXPECT_EQ(bad, 0);
}

TEST_F(Cache, a_full_disk_is_said_once_and_served_from_the_store) {
  const std::string disk = folder_ / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1536k") != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  ::chmod(disk.c_str(), 0700);
  {
    const auto cache =
        CacheStore::make(source_, {.folder = disk + "/cache", .bytes = 1 << 30, .keep_free = 0})
            .value();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(*cache, 0, kBig), wanted(0, kBig));
    EXPECT_EQ(cache->take_notices().size(), 2u);  // that it is memory, and that it is full
    EXPECT_GT(cache->counts().hits + cache->counts().filled_bytes, 0u);
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(Cache, threads_read_at_random_while_room_is_made) {
  for (uint32_t i = 0; i < 8; ++i) source_->put("mem://" + std::to_string(i), content(1 << 20, i));
  std::vector<std::jthread> threads;
  std::atomic<int> bad{0};
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 6; ++i) {
        const auto cache = open({.bytes = 3 << 20});
        const std::string path = "mem://" + std::to_string(random() % 8);
        for (int k = 0; k < 20; ++k) {
          const uint64_t at = random() % 900'000;
          if (read(*cache, at, 100'000, path) != read(*source_, at, 100'000, path)) ++bad;
        }
      }
    });
  threads.clear();
  EXPECT_EQ(bad, 0);
}

}  // namespace
}  // namespace headrace
