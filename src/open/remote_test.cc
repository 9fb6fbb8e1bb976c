// SPDX-License-Identifier: Apache-2.0
//
// A data set that is not on this machine: opened by its URL, through the table of stores.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "index/manifest.h"
#include "open/index_places.h"
#include "open/open.h"
#include "open/test_data.h"
#include "storage/memory.h"
#include "storage/open_store.h"
#include "storage/test_folder.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;

// As object stores are: files have tags and no times, folders have nothing.
class TaggedStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void read(std::span<ReadRequest> requests) const override {
    for (ReadRequest& request : requests) std::erase(request.version, '"');
    inner().read(requests);
  }
  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<Result<FileInfo>> out = inner().stat_all(paths);
    for (Result<FileInfo>& info : out) {
      if (!info.ok() || info.value().is_folder) continue;
      info.value().version = "\"" + info.value().version + "\"";
      info.value().modified_ns = 0;
    }
    return out;
  }
};

// Four shards at far://bucket, read with a latency, and a cache folder that is the test's own.
class RemoteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEADRACE_CACHE", cache_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    for (int i = 0; i < 4; ++i) put_shard(i, 10 + i);
  }
  void TearDown() override { ::unsetenv("HEADRACE_CACHE"); }  // NOLINT(concurrency-mt-unsafe)

  void put_shard(int i, int samples) {
    const std::string tar = write_tar(numbered_samples(samples, 100 * i));
    memory_->put("far://bucket/data/t-" + std::to_string(i) + ".tar", tar);
    local_.put("t-" + std::to_string(i) + ".tar", tar);
  }
  // Names in the cache folder that end so.
  size_t cached(std::string_view suffix) const {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache_.path()))
      n += entry.path().string().ends_with(suffix);
    return n;
  }

  TestFolder local_, cache_;
  std::shared_ptr<MemoryStore> memory_ = std::make_shared<MemoryStore>(2);
  const ScopedStore far_{"far",
                         std::make_shared<LatencyStore>(std::make_shared<TaggedStore>(memory_),
                                                        LatencyOptions{.latency = 1ms})};
  const std::string url_ = "far://bucket/data/t-{0..3}.tar";
};

TEST_F(RemoteTest, is_the_same_data_set_by_braces_a_glob_or_its_folder) {
  const Opened local = open_source({local_ / "t-{0..3}.tar"}).value();
  for (const std::string& url :
       {url_, std::string("far://bucket/data/t-*.tar"), std::string("far://bucket/data"),
        std::string("far://bucket/data/"), std::string("far://bucket/*/t-?.tar")}) {
    const Result<Opened> opened = open_source({url});
    ASSERT_TRUE(opened.ok()) << url << ": " << opened.status().text();
    EXPECT_EQ(opened.value().source->fingerprint(), local.source->fingerprint()) << url;
    EXPECT_EQ(opened.value().source->file_path(1), "far://bucket/data/t-1.tar");
    EXPECT_EQ(read_samples(*opened.value().source).value(), read_samples(*local.source).value());
  }
}

TEST_F(RemoteTest, its_index_is_kept_in_the_cache_folder_and_the_user_is_told) {
  const Opened first = open_source({url_}).value();
  EXPECT_EQ(first.shards_built, 4u);
  ASSERT_EQ(first.notices.size(), 1u);
  EXPECT_NE(first.notices[0].find(cache_.path()), std::string::npos) << first.notices[0];
  EXPECT_EQ(cached(".hridx"), 4u);
  EXPECT_EQ(cached(".lock"), 0u);
  for (const uint64_t memory : {uint64_t{64} << 20, uint64_t{0}}) {
    const Opened again = open_source({url_}, {.memory_bytes = memory}).value();
    EXPECT_EQ(again.shards_reused, 4u);
    EXPECT_TRUE(again.notices.empty());
    EXPECT_EQ(read_samples(*again.source).value(), read_samples(*first.source).value());
  }
}

TEST_F(RemoteTest, a_shard_of_another_version_is_indexed_again) {
  ASSERT_TRUE(open_source({url_}).ok());
  put_shard(2, 12);  // the same bytes, written again
  EXPECT_EQ(open_source({url_}).value().shards_built, 1u);
  EXPECT_EQ(open_source({url_}).value().shards_built, 0u);
}

TEST_F(RemoteTest, a_shard_that_changes_while_it_is_open_is_an_error_and_no_other_bytes) {
  const TestFolder to;
  for (const std::string& index : {std::string(), to / "index"}) {
    ASSERT_TRUE(build_index({url_}, to / "index").ok());
    const Opened opened = open_source({url_}, {.index = index}).value();
    ASSERT_TRUE(read_samples(*opened.source).ok());
    put_shard(2, 12);  // as long as before
    const auto read = read_samples(*opened.source);
    ASSERT_FALSE(read.ok()) << index;
    EXPECT_EQ(read.status().code(), Code::kCorrupt);
    EXPECT_NE(read.status().text().find("t-2.tar"), std::string::npos) << read.status().text();
  }
}

TEST_F(RemoteTest, an_index_of_another_version_is_refused_however_long_the_file_is) {
  const TestFolder to;
  ASSERT_TRUE(build_index({url_}, to / "index").ok());
  put_shard(2, 12);  // as long as before
  const Opened opened = open_source({url_}, {.index = to / "index"}).value();
  const auto read = read_samples(*opened.source);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().text().find("t-2.tar"), std::string::npos) << read.status().text();
  EXPECT_NE(read.status().text().find("index the data set again"), std::string::npos);
}

TEST_F(RemoteTest, a_glob_with_a_folder_that_cannot_be_listed_is_an_error_and_no_smaller_data_set) {
  // Of two folders one has the shards; the listing of the other fails.
  class OneFails final : public StoreWrapper {
   public:
    using StoreWrapper::StoreWrapper;
    Result<ListPage> list_page(const std::string& folder, const std::string& after) const override {
      if (folder.ends_with("/b")) return unavailable("the server answers 503");
      return inner().list_page(folder, after);
    }
  };
  memory_->put("far://bucket/two/a/t.tar", write_tar(numbered_samples(3)));
  memory_->put("far://bucket/two/b/t.tar", write_tar(numbered_samples(3)));
  OpenOptions options;
  options.store = std::make_shared<OneFails>(memory_);
  const Result<Opened> opened = open_source({"far://bucket/two/*/*.tar"}, options);
  EXPECT_EQ(opened.status().code(), Code::kUnavailable) << opened.status().text();
}

TEST_F(RemoteTest, a_sidecar_that_lies_beside_it_is_used) {
  ASSERT_TRUE(open_source({url_}).ok());
  for (const auto& entry : std::filesystem::directory_iterator(cache_.path())) {
    const std::string name = entry.path().filename().string();
    memory_->put("far://bucket/data/" + name.substr(name.find('-') + 1),
                 TestFolder::read(entry.path().string()));
    std::filesystem::remove(entry.path());
  }
  EXPECT_EQ(open_source({url_}).value().shards_reused, 4u);
  EXPECT_EQ(cached(".hridx"), 0u);
}

TEST_F(RemoteTest, an_index_may_lie_anywhere) {
  const TestFolder to;
  ASSERT_TRUE(build_index({url_}, to / "index").ok());
  const auto expected = read_samples(*open_source({url_}).value().source).value();
  EXPECT_EQ(read_samples(*open_source({url_}, {.index = to / "index"}).value().source).value(),
            expected);
  for (const std::string_view name : {kManifestName, kPartsName})
    memory_->put("far://bucket/index/" + std::string(name),
                 TestFolder::read(to / ("index/" + std::string(name))));
  EXPECT_EQ(
      read_samples(*open_source({url_}, {.index = "far://bucket/index/"}).value().source).value(),
      expected);
  EXPECT_EQ(read_samples(
                *open_source({local_ / "t-*.tar"}, {.index = "far://bucket/index"}).value().source)
                .value(),
            expected);
}

TEST_F(RemoteTest, an_index_goes_only_where_something_can_be_written) {
  const Status s = build_index({url_}, "far://bucket/index");
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_NE(s.text().find("far://bucket/index"), std::string::npos) << s.text();
}

// Whether such a folder has changed nobody can tell: no index of it is believed later.
TEST_F(RemoteTest, a_folder_of_files_is_listed_anew_each_time) {
  for (const std::string_view name : {"cat/1.jpg", "cat/2.jpg", "dog/1.jpg"})
    memory_->put("far://bucket/pets/" + std::string(name), name);
  const Opened opened = open_source({"far://bucket/pets"}).value();
  EXPECT_EQ(opened.format, "files");
  EXPECT_EQ(opened.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(read_sample(*opened.source, 2).value().fields.at("jpg"), "dog/1.jpg");
  memory_->put("far://bucket/pets/dog/2.jpg", "dog/2.jpg");
  EXPECT_EQ(open_source({"far://bucket/pets"}).value().source->size(), 4u);
  EXPECT_EQ(cached(".hridx"), 0u);
}

TEST_F(RemoteTest, a_local_list_names_files_of_servers_and_of_this_disk) {
  memory_->put("far://bucket/texts/a.txt", "of the server");
  local_.put("texts/b.txt", "of the disk");
  local_.put("list.csv", "path,n\nfar://bucket/texts/a.txt,1\ntexts/b.txt,2\n");
  const Opened opened = open_source({local_ / "list.csv"}).value();
  EXPECT_EQ(opened.source->file_path(0), "far://bucket/texts/a.txt");
  EXPECT_FALSE(opened.source->store().cost(opened.source->file_path(0)).in_caller);
  EXPECT_TRUE(opened.source->store().cost(opened.source->file_path(1)).in_caller);
  Buffer got;
  const Store& store = opened.source->store();
  ASSERT_TRUE(store.read_at(opened.source->file_path(0), 3, 3, got).ok());
  EXPECT_EQ(as_text(got.bytes()), "the");
  ASSERT_TRUE(store.read_at(opened.source->file_path(1), 0, 2, got).ok());
  EXPECT_EQ(as_text(got.bytes()), "of");
  EXPECT_EQ(read_samples(*opened.source).value().size(), 2u);
}

TEST_F(RemoteTest, a_local_list_with_a_root_on_a_server) {
  memory_->put("far://bucket/texts/a.txt", "of the server");
  local_.put("list.csv", "path,n\ntexts/a.txt,1\n");
  const Opened opened = open_source({local_ / "list.csv"}, {.root = "far://bucket"}).value();
  EXPECT_EQ(opened.source->file_path(0), "far://bucket/texts/a.txt");
}

TEST_F(RemoteTest, what_a_local_list_names_and_is_not_there_is_said_by_its_url) {
  local_.put("list.csv", "path,n\nfar://bucket/texts/none.txt,1\n");
  const Result<Opened> opened = open_source({local_ / "list.csv"});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kNotFound);
  EXPECT_NE(opened.status().text().find("far://bucket/texts/none.txt"), std::string::npos)
      << opened.status().text();
}

TEST_F(RemoteTest, one_data_set_lies_in_one_store) {
  const Status mixed = open_source({url_, local_ / "t-0.tar"}).status();
  EXPECT_EQ(mixed.code(), Code::kInvalidArgument);
  EXPECT_NE(mixed.text().find("one store"), std::string::npos) << mixed.text();
  EXPECT_EQ(open_source({"nowhere://bucket/x.tar"}).status().code(), Code::kUnsupported);
  EXPECT_EQ(open_source({"far://bucket/none.tar"}).status().code(), Code::kNotFound);
}

TEST_F(RemoteTest, one_process_builds_while_others_wait) {
  auto first = BuildLock::acquire("far://bucket/data/t-0.tar", nullptr).value();
  EXPECT_EQ(cached(".lock"), 1u);
  const std::atomic<bool> cancel{true};
  EXPECT_EQ(BuildLock::acquire("far://bucket/data/t-0.tar", &cancel).status().code(),
            Code::kCancelled);
  std::atomic<bool> has_it{false};
  {
    const std::jthread second([&] {
      const auto lock = BuildLock::acquire("far://bucket/data/t-0.tar", nullptr).value();
      has_it = true;
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(has_it);
    first = nullptr;
  }
  EXPECT_TRUE(has_it);
  EXPECT_EQ(cached(".lock"), 0u);
}

}  // namespace
}  // namespace headrace
