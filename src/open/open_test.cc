// SPDX-License-Identifier: Apache-2.0
#include "open/open.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "index/manifest.h"
#include "index/sidecar.h"
#include "open/index_places.h"
#include "open/test_data.h"
#include "storage/fault.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

// A few tar shards in a folder, and a cache folder that is its own.
class OpenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEADRACE_CACHE", cache_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    for (int i = 0; i < 4; ++i)
      f_.put("t-" + std::to_string(i) + ".tar", write_tar(numbered_samples(10 + i, 100 * i)));
    url_ = f_ / "t-{0..3}.tar";
  }
  void TearDown() override { ::unsetenv("HEADRACE_CACHE"); }  // NOLINT(concurrency-mt-unsafe)

  // Moves the time of a file on by a second, as a later write would.
  static void touch(const std::string& path) {
    std::filesystem::last_write_time(
        path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  }
  // A non-empty folder where the sidecar belongs: even root cannot write it.
  void make_unwritable(const std::string& shard) const {
    std::filesystem::create_directories(sidecar_path(shard) + "/in/the/way");
  }

  TestFolder f_, cache_;
  std::string url_;
};

TEST_F(OpenTest, sidecars_are_built_once_and_then_reused) {
  const Opened first = open_source({url_}).value();
  EXPECT_EQ(first.shards_built, 4u);
  EXPECT_EQ(first.source->size(), 46u);
  EXPECT_EQ(first.format, "tar");
  EXPECT_TRUE(std::filesystem::exists(f_ / "t-0.tar.hridx"));
  const Opened second = open_source({url_}).value();
  EXPECT_EQ(second.shards_built, 0u);
  EXPECT_EQ(second.shards_reused, 4u);
  EXPECT_EQ(second.source->fingerprint(), first.source->fingerprint());
  EXPECT_EQ(read_samples(*second.source).value(), read_samples(*first.source).value());
}

TEST_F(OpenTest, reading_by_groups_equals_reading_whole) {
  const Opened whole = open_source({url_}).value();
  const Opened lean = open_source({url_}, {.memory_bytes = 0}).value();
  EXPECT_EQ(lean.shards_reused, 4u);
  EXPECT_EQ(read_samples(*lean.source).value(), read_samples(*whole.source).value());
}

TEST_F(OpenTest, a_glob_a_folder_and_braces_are_one_data_set) {
  const Hash128 braces = open_source({url_}).value().source->fingerprint();
  EXPECT_EQ(open_source({f_ / "t-*.tar"}).value().source->fingerprint(), braces);
  EXPECT_EQ(open_source({f_.path()}).value().source->fingerprint(), braces);
  EXPECT_NE(open_source({f_ / "t-{1,0,2,3}.tar"}).value().source->fingerprint(), braces);
}

TEST_F(OpenTest, moving_the_folder_changes_nothing) {
  const Hash128 here = open_source({url_}).value().source->fingerprint();
  const TestFolder other;
  for (int i = 0; i < 4; ++i)
    other.put("deep/er/t-" + std::to_string(i) + ".tar",
              TestFolder::read(f_ / ("t-" + std::to_string(i) + ".tar")));
  EXPECT_EQ(open_source({other / "deep/er/t-*.tar"}).value().source->fingerprint(), here);
}

TEST_F(OpenTest, a_changed_shard_is_indexed_again) {
  ASSERT_TRUE(open_source({url_}).ok());
  f_.put("t-1.tar", write_tar(numbered_samples(3)));
  touch(f_ / "t-1.tar");
  const Opened again = open_source({url_}).value();
  EXPECT_EQ(again.shards_built, 1u);
  EXPECT_EQ(again.source->size(), 46u - 11 + 3);
  touch(f_ / "t-2.tar");  // the same size, another time
  EXPECT_EQ(open_source({url_}).value().shards_built, 1u);
}

TEST_F(OpenTest, a_damaged_sidecar_is_built_again_in_silence) {
  ASSERT_TRUE(open_source({url_}).ok());
  const std::string path = f_ / "t-0.tar.hridx";
  std::string bytes = TestFolder::read(path);
  for (const size_t at : {size_t{0}, size_t{8}, size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    std::string bad = bytes;
    bad[at] ^= 4;
    f_.put("t-0.tar.hridx", bad);
    const Opened opened = open_source({url_}).value();
    EXPECT_EQ(opened.shards_built, 1u) << at;
    EXPECT_TRUE(opened.notices.empty());
  }
  f_.put("t-0.tar.hridx", bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(open_source({url_}).value().shards_built, 1u);
  f_.put("t-0.tar.hridx", "");
  EXPECT_EQ(open_source({url_}).value().shards_built, 1u);
  EXPECT_EQ(open_source({url_}).value().shards_built, 0u);
}

TEST_F(OpenTest, where_sidecars_cannot_be_written_the_cache_has_them_and_says_so_once) {
  for (int i = 0; i < 4; ++i) make_unwritable(f_ / ("t-" + std::to_string(i) + ".tar"));
  const Opened first = open_source({url_}).value();
  EXPECT_EQ(first.shards_built, 4u);
  ASSERT_EQ(first.notices.size(), 1u);
  EXPECT_NE(first.notices[0].find(cache_.path()), std::string::npos) << first.notices[0];
  const Opened second = open_source({url_}).value();
  EXPECT_EQ(second.shards_built, 0u);
  EXPECT_TRUE(second.notices.empty());
  EXPECT_EQ(read_samples(*second.source).value(), read_samples(*first.source).value());
}

TEST_F(OpenTest, where_nothing_can_be_written_it_still_opens) {
  for (int i = 0; i < 4; ++i) make_unwritable(f_ / ("t-" + std::to_string(i) + ".tar"));
  const std::string file = f_.put("file", "x");
  for (const char* name : {"HEADRACE_CACHE", "SLURM_TMPDIR", "TMPDIR", "XDG_CACHE_HOME"})
    ::setenv(name, (file + "/below").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  const Result<std::string> cache = cache_folder();
  const auto opened = open_source({url_});
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR", "XDG_CACHE_HOME"})
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  // /tmp itself can be written where this test runs: then the cache is there.
  EXPECT_TRUE(cache.ok() && cache.value().starts_with("/tmp/headrace-"));
  EXPECT_EQ(opened.value().notices.size(), 1u);
}

TEST(CacheFolder, one_that_others_may_write_is_passed_over) {
  const TestFolder f;
  std::filesystem::create_directory(f / "open");
  ::chmod((f / "open").c_str(), 0777);
  ::setenv("HEADRACE_CACHE", (f / "open").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_NE(cache_folder().value(), f / "open");
  std::filesystem::create_directory_symlink(f / "open", f / "link");
  ::setenv("HEADRACE_CACHE", (f / "link").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_NE(cache_folder().value(), f / "link");
  ::setenv("HEADRACE_CACHE", (f / "new").c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(cache_folder().value(), f / "new");
  struct stat info{};
  ASSERT_EQ(::stat((f / "new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ::unsetenv("HEADRACE_CACHE");  // NOLINT(concurrency-mt-unsafe)
}

TEST_F(OpenTest, two_processes_at_once_build_once) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i)
      std::filesystem::remove(f_ / ("t-" + std::to_string(i) + ".tar.hridx"));
    pid_t children[2];
    for (pid_t& child : children) {
      child = ::fork();
      if (child == 0) {
        const auto opened = open_source({url_}, {.threads = 1});
        ::_exit(opened.ok() ? static_cast<int>(opened.value().shards_built) : 99);
      }
    }
    int built = 0;
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      built += WEXITSTATUS(status);
    }
    EXPECT_EQ(built, 4);
  }
}

TEST_F(OpenTest, class_folders_get_a_sidecar_that_follows_the_folders_times) {
  const TestFolder g;
  g.put("data/cat/1.jpg", "x");
  g.put("data/dog/2.jpg", "y");
  EXPECT_EQ(open_source({g / "data"}).value().shards_built, 1u);
  EXPECT_TRUE(std::filesystem::exists(g / "data.hridx"));
  EXPECT_EQ(open_source({g / "data/"}).value().shards_built, 0u);
  g.put("data/dog/3.jpg", "z");
  const Opened more = open_source({g / "data"}).value();
  EXPECT_EQ(more.shards_built, 1u);
  EXPECT_EQ(more.source->size(), 3u);
  std::filesystem::remove_all(g / "data/cat");
  EXPECT_EQ(open_source({g / "data"}).value().source->size(), 2u);
  std::filesystem::rename(g / "data", g / "renamed");
  EXPECT_EQ(open_source({g / "renamed"}).value().source->fingerprint(),
            open_source({g / "renamed"}, {.keep_sidecars = false}).value().source->fingerprint());
}

TEST_F(OpenTest, folders_of_other_classes_are_not_one_data_set) {
  const TestFolder g, to;
  g.put("a/cat/1.jpg", "x");
  g.put("a/dog/2.jpg", "x");
  g.put("b/dog/3.jpg", "x");
  g.put("b/emu/4.jpg", "x");
  const Status s = open_source({g / "a", g / "b"}).status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_TRUE(says(s, "class 0 is 'cat'") && says(s, "'dog'")) << s.text();
  EXPECT_FALSE(build_index({g / "a", g / "b"}, to.path()).ok());
  std::filesystem::create_directory(g / "b/cat");
  std::filesystem::remove_all(g / "b/emu");
  EXPECT_EQ(open_source({g / "a", g / "b"}).value().source->size(), 3u);
}

TEST_F(OpenTest, a_relative_path_stays_what_it_was_when_the_process_moves) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(f_.path());
  const Opened opened = open_source({"t-0.tar"}).value();
  std::filesystem::current_path(before);
  EXPECT_TRUE(read_sample(*opened.source, 0).ok());
  EXPECT_EQ(opened.source->fingerprint(),
            open_source({f_ / "t-0.tar"}).value().source->fingerprint());
}

TEST_F(OpenTest, the_name_of_a_class_root_is_not_in_the_fingerprint) {
  const TestFolder g;
  g.put("a/cat/1.jpg", "x");
  g.put("elsewhere/b/cat/1.jpg", "another picture");
  EXPECT_EQ(open_source({g / "a"}).value().source->fingerprint(),
            open_source({g / "elsewhere/b"}).value().source->fingerprint());
}

TEST_F(OpenTest, a_missing_shard_is_named) {
  const Status s = open_source({f_ / "t-{0..4}.tar"}).status();
  EXPECT_EQ(s.code(), Code::kNotFound);
  EXPECT_TRUE(says(s, "t-4.tar")) << s.text();
  EXPECT_EQ(open_source({f_ / "nothing"}).status().code(), Code::kNotFound);
}

TEST_F(OpenTest, two_formats_in_one_data_set_are_an_error) {
  f_.put("t-4.tar", "a.jpg 1\n");
  f_.put("list.txt", "t-0.tar\n");
  const Status s = open_source({url_, f_ / "list.txt"}).status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_TRUE(says(s, "two formats")) << s.text();
}

TEST_F(OpenTest, a_truncated_shard_is_an_error_that_names_it) {
  std::filesystem::resize_file(f_ / "t-2.tar", 3000);
  const Status s = open_source({url_}).status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_TRUE(says(s, "t-2.tar") && says(s, "last good sample")) << s.text();
}

TEST_F(OpenTest, more_than_a_thousand_shards_without_index_name_the_command) {
  const std::string tar = write_tar(numbered_samples(1));
  for (int i = 0; i <= 1000; ++i) f_.put("many/" + std::to_string(i) + ".tar", tar);
  const std::string url = f_ / "many/{0..1000}.tar";
  const Status s = open_source({url}).status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_TRUE(says(s, "headrace index '" + url + "' --to")) << s.text();
  ASSERT_TRUE(build_index({url}, f_ / "index").ok());
  EXPECT_EQ(open_source({url}, {.index = f_ / "index"}).value().source->size(), 1001u);
}

TEST_F(OpenTest, an_index_folder_gives_the_same_data_set) {
  const TestFolder to;
  ASSERT_TRUE(build_index({url_}, to / "index").ok());
  const Opened by_index = open_source({url_}, {.index = to / "index"}).value();
  EXPECT_EQ(by_index.shards_reused, 4u);
  EXPECT_FALSE(std::filesystem::exists(f_ / "t-0.tar.hridx"));
  const Opened by_sidecars = open_source({url_}).value();
  EXPECT_EQ(by_index.source->fingerprint(), by_sidecars.source->fingerprint());
  EXPECT_EQ(by_index.source->schema(), by_sidecars.source->schema());
  EXPECT_EQ(by_index.source->blocks().samples, by_sidecars.source->blocks().samples);
  EXPECT_EQ(by_index.source->blocks().bytes, by_sidecars.source->blocks().bytes);
  EXPECT_EQ(read_samples(*by_index.source).value(), read_samples(*by_sidecars.source).value());
}

TEST_F(OpenTest, an_index_of_another_data_set_or_of_old_shards_is_refused) {
  const TestFolder to;
  ASSERT_TRUE(build_index({url_}, to.path()).ok());
  EXPECT_TRUE(
      says(open_source({f_ / "t-{0..2}.tar"}, {.index = to.path()}).status(), "another data set"));
  EXPECT_TRUE(says(open_source({f_ / "t-{1,0,2,3}.tar"}, {.index = to.path()}).status(),
                   "another data set"));
  f_.put("t-1.tar", write_tar(numbered_samples(3)));
  const Opened opened = open_source({url_}, {.index = to.path()}).value();
  EXPECT_TRUE(read_sample(*opened.source, 0).ok());
  const Status s = read_sample(*opened.source, 12).status();
  EXPECT_TRUE(says(s, "t-1.tar") && says(s, "index the data set again")) << s.text();
}

TEST_F(OpenTest, class_folders_and_lists_can_be_indexed_ahead_too) {
  const TestFolder g, to;
  g.put("data/cat/1.jpg", "x");
  g.put("data/dog/2.jpg", "y");
  g.put("data/list.txt", "cat/1.jpg 5\n");
  ASSERT_TRUE(build_index({g / "data"}, to / "a").ok());
  EXPECT_EQ(open_source({g / "data"}, {.index = to / "a"}).value().classes,
            (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(read_samples(*open_source({g / "data"}, {.index = to / "a"}).value().source).value(),
            read_samples(*open_source({g / "data"}).value().source).value());
  ASSERT_TRUE(build_index({g / "data/list.txt"}, to / "b").ok());
  EXPECT_EQ(read_sample(*open_source({g / "data/list.txt"}, {.index = to / "b"}).value().source, 0)
                .value()
                .fields.at("cls"),
            "5");
}

TEST_F(OpenTest, progress_counts_shards_and_cancel_stops) {
  std::vector<uint64_t> done;
  ASSERT_TRUE(open_source({url_}, {.threads = 2,
                                   .progress =
                                       [&](const IndexProgress& p) {
                                         done.push_back(p.shards_done);
                                         EXPECT_EQ(p.shards, 4u);
                                       }})
                  .ok());
  EXPECT_EQ(done, (std::vector<uint64_t>{1, 2, 3, 4}));
  const std::atomic<bool> cancel{true};
  EXPECT_EQ(open_source({url_}, {.keep_sidecars = false, .cancel = &cancel}).status().code(),
            Code::kCancelled);
}

TEST_F(OpenTest, a_read_that_fails_while_indexing_keeps_its_code) {
  auto store = std::make_shared<FaultStore>(TestFolder::store());
  store->add(
      {.path = "t-1.tar", .fail_read = 2, .and_all_later = true, .code = Code::kUnavailable});
  EXPECT_EQ(open_source({url_}, {.store = store, .keep_sidecars = false}).status().code(),
            Code::kUnavailable);
}

}  // namespace
}  // namespace headrace
