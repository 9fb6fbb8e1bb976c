// SPDX-License-Identifier: Apache-2.0
//
// What every store promises.  Runs once per row of kStores.

#include "storage/store.h"

#include <gtest/gtest.h>

#include <thread>

#include "storage/fault.h"
#include "storage/memory.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

// A store with some files in it, and where they are.
struct Fixture {
  std::shared_ptr<const Store> store;
  std::string root;
  std::shared_ptr<TestFolder> folder = nullptr;
};

constexpr std::pair<std::string_view, std::string_view> kFiles[] = {
    {"a.bin", "0123456789"}, {"empty", ""}, {"sub/b.bin", "bee"}, {"sub/a.bin", "ay"}, {"Z", "zed"},
};

Fixture local(size_t open_files) {
  auto folder = std::make_shared<TestFolder>();
  for (const auto& [name, content] : kFiles) folder->put(name, content);
  return {local_store(open_files), folder->path(), folder};
}
Fixture memory() {
  auto store = std::make_shared<MemoryStore>();
  for (const auto& [name, content] : kFiles) store->put("root/" + std::string(name), content);
  return {store, "root"};
}
Fixture wrapped() {
  Fixture inner = local(4);
  return {std::make_shared<FaultStore>(inner.store), inner.root, inner.folder};
}

struct Row {
  const char* name;
  Fixture (*make)();
};
constexpr Row kStores[] = {
    {"local", [] { return local(4); }},
    {"one_descriptor", [] { return local(1); }},
    {"memory", memory},
    {"fault_without_faults", wrapped},
};

class StoreConformance : public ::testing::TestWithParam<Row> {
 protected:
  Fixture f_ = GetParam().make();
  const Store& store() const { return *f_.store; }
  std::string at(std::string_view name) const { return f_.root + '/' + std::string(name); }
};

TEST_P(StoreConformance, a_range_is_exact) {
  Buffer out;
  ASSERT_TRUE(store().read_at(at("a.bin"), 3, 4, out).ok());
  EXPECT_EQ(as_text(out.bytes()), "3456");
  ASSERT_TRUE(store().read_at(at("a.bin"), 10, 0, out).ok());
  EXPECT_EQ(out.size(), 0u);
}

TEST_P(StoreConformance, a_whole_file_is_whole) {
  EXPECT_EQ(as_text(store().read_all(at("a.bin")).value().bytes()), "0123456789");
  EXPECT_EQ(store().read_all(at("empty")).value().size(), 0u);
}

// Lengths and offsets come from files: no memory is taken for what is not there.
TEST_P(StoreConformance, far_past_the_end_is_corrupt) {
  Buffer out;
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>{8, kHuge}, {kHuge, kHuge}, {~uint64_t{0} - 1, 1}}) {
    const Status s = store().read_at(at("a.bin"), offset, length, out);
    EXPECT_EQ(s.code(), Code::kCorrupt) << s.text();
    EXPECT_EQ(s.place().file, at("a.bin"));
    EXPECT_LE(out.capacity(), 4096u);
  }
}

TEST_P(StoreConformance, past_the_end_is_corrupt_and_names_path_and_offset) {
  Buffer out;
  for (const auto& [offset, length] : {std::pair<uint64_t, uint64_t>{8, 3}, {11, 1}}) {
    const Status s = store().read_at(at("a.bin"), offset, length, out);
    EXPECT_EQ(s.code(), Code::kCorrupt);
    EXPECT_EQ(s.place().file, at("a.bin"));
    EXPECT_GE(s.place().offset, 0);
  }
}

TEST_P(StoreConformance, a_missing_file_is_not_found) {
  Buffer out;
  EXPECT_EQ(store().read_at(at("none"), 0, 1, out).code(), Code::kNotFound);
  EXPECT_EQ(store().read_all(at("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(store().stat(at("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(store().list(at("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(store().stat(at("none")).status().place().file, at("none"));
}

TEST_P(StoreConformance, a_batch_calls_done_once_for_each) {
  std::vector<Buffer> out(3);
  std::vector<Status> got;
  const std::string a = at("a.bin");
  const std::string none = at("none");
  const auto done = [&got](Status s) { got.push_back(std::move(s)); };
  std::vector<ReadRequest> batch = {
      {a, 0, 2, &out[0], done}, {none, 0, 1, &out[1], done}, {a, 8, 2, &out[2], done}};
  store().read(batch);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_TRUE(got[0].ok());
  EXPECT_FALSE(got[1].ok());
  EXPECT_TRUE(got[2].ok());
  EXPECT_EQ(as_text(out[2].bytes()), "89");
}

TEST_P(StoreConformance, a_listing_is_sorted_by_bytes_with_whole_paths) {
  const auto entries = store().list(f_.root).value();
  std::vector<std::string> paths;
  for (const FileInfo& entry : entries) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{at("Z"), at("a.bin"), at("empty"), at("sub")}));
  EXPECT_TRUE(entries[3].is_folder);
  EXPECT_FALSE(entries[0].is_folder);
}

TEST_P(StoreConformance, stat_tells_size_and_kind) {
  EXPECT_EQ(store().stat(at("a.bin")).value().bytes, 10u);
  EXPECT_FALSE(store().stat(at("a.bin")).value().is_folder);
  EXPECT_TRUE(store().stat(at("sub")).value().is_folder);
}

TEST_P(StoreConformance, threads_read_at_once) {
  std::vector<std::jthread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Buffer out;
      for (int i = 0; i < 500; ++i) {
        const auto& [name, content] = kFiles[static_cast<size_t>(i + t) % std::size(kFiles)];
        if (!store().read_at(at(name), 0, content.size(), out).ok() ||
            as_text(out.bytes()) != content)
          ++bad;
      }
    });
  threads.clear();
  EXPECT_EQ(bad, 0);
}

INSTANTIATE_TEST_SUITE_P(All, StoreConformance, ::testing::ValuesIn(kStores),
                         [](const auto& row) { return std::string(row.param.name); });

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

}  // namespace
}  // namespace headrace
