// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "format/expand.h"
#include "format/test_data.h"
#include "pack/journal.h"
#include "storage/fault.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".hridx")) out[name] = TestFolder::read(entry.path().string());
  }
  return out;
}

// Class folders of 97 pictures, and somewhere to pack them to.
class PackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 97; ++i)
      f_.put("data/class" + std::to_string(i / 20) + "/" + std::to_string(1000 + i) + ".JPEG",
             std::string(static_cast<size_t>(i * 13), static_cast<char>('a' + i % 26)));
    source_ = open_source({f_ / "data"}, {.keep_sidecars = false}).value().source;
    wanted_ = read_samples(*source_).value();
  }
  static std::vector<TestSample> read(const std::string& folder) {
    return read_samples(*open_source({folder}).value().source).value();
  }

  TestFolder f_;
  std::shared_ptr<const Source> source_;
  std::vector<TestSample> wanted_;
};

TEST_F(PackTest, keeps_the_order_when_asked) {
  const PackResult result = pack(*source_, f_ / "out", {.shards = 4, .keep_order = true}).value();
  EXPECT_EQ(result.shards, 4u);
  EXPECT_EQ(result.samples, 97u);
  EXPECT_EQ(read(f_ / "out"), wanted_);
  EXPECT_TRUE(std::filesystem::exists(f_ / "out/shard-000003.tar"));
  EXPECT_TRUE(std::filesystem::exists(f_ / "out/headrace.json"));
  EXPECT_FALSE(std::filesystem::exists(f_ / "out/headrace.unfinished"));
}

TEST_F(PackTest, shuffles_by_default_and_loses_nothing) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 4, .seed = 3}).ok());
  std::vector<TestSample> got = read(f_ / "out");
  EXPECT_NE(got, wanted_);
  const auto by_key = [](const TestSample& a, const TestSample& b) { return a.key < b.key; };
  std::sort(got.begin(), got.end(), by_key);
  std::sort(wanted_.begin(), wanted_.end(), by_key);
  EXPECT_EQ(got, wanted_);
}

TEST_F(PackTest, each_shuffled_shard_has_every_class) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 4}).ok());
  for (int s = 0; s < 4; ++s) {
    std::set<std::string> classes;
    for (const TestSample& sample : read(f_ / ("out/shard-00000" + std::to_string(s) + ".tar")))
      classes.insert(sample.fields.at("cls"));
    EXPECT_EQ(classes.size(), 5u);
  }
}

TEST_F(PackTest, shards_are_even_in_samples) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 9}).ok());
  const Opened opened = open_source({f_ / "out"}).value();
  EXPECT_EQ(opened.shards_built, 0u);  // the sidecars came along
  for (size_t s = 0; s < 9; ++s) {
    EXPECT_GE(opened.source->shards().samples(s), 10u);
    EXPECT_LE(opened.source->shards().samples(s), 11u);
  }
}

TEST_F(PackTest, the_same_call_gives_the_same_bytes_whatever_the_threads) {
  ASSERT_TRUE(pack(*source_, f_ / "a", {.shards = 5, .seed = 9, .threads = 1}).ok());
  ASSERT_TRUE(pack(*source_, f_ / "b", {.shards = 5, .seed = 9, .threads = 3}).ok());
  EXPECT_EQ(files_of(f_ / "a"), files_of(f_ / "b"));
  ASSERT_TRUE(pack(*source_, f_ / "c", {.shards = 5, .seed = 10}).ok());
  EXPECT_NE(files_of(f_ / "a"), files_of(f_ / "c"));
}

TEST_F(PackTest, the_same_call_again_says_that_all_is_there) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 3}).ok());
  const auto before = files_of(f_ / "out");
  const PackResult again = pack(*source_, f_ / "out", {.shards = 3}).value();
  EXPECT_TRUE(again.was_complete);
  EXPECT_EQ(again.shards_kept, 3u);
  EXPECT_EQ(files_of(f_ / "out"), before);
}

TEST_F(PackTest, a_folder_of_something_else_is_refused) {
  f_.put("other/precious.txt", "x");
  EXPECT_TRUE(says(pack(*source_, f_ / "other").status(), "precious.txt"));
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 3}).ok());
  const Status s = pack(*source_, f_ / "out", {.shards = 4}).status();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_TRUE(says(s, "another pack")) << s.text();
  EXPECT_TRUE(says(pack(*source_, f_ / "data").status(), "class0"));
}

TEST_F(PackTest, a_finished_pack_with_a_shard_gone_is_an_error) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 3}).ok());
  std::filesystem::remove(f_ / "out/shard-000001.tar");
  EXPECT_TRUE(says(pack(*source_, f_ / "out", {.shards = 3}).status(), "1 of its 3 shards"));
}

TEST_F(PackTest, goes_on_after_an_error_with_the_same_bytes) {
  ASSERT_TRUE(pack(*source_, f_ / "whole", {.shards = 6}).ok());
  auto store = std::make_shared<FaultStore>(local_store());
  const auto faulty =
      open_source({f_ / "data"}, {.store = store, .keep_sidecars = false}).value().source;
  // 16 reads for the estimate, then 50 of 97.
  store->add({.fail_read = 66, .and_all_later = true, .code = Code::kUnavailable});
  EXPECT_EQ(pack(*faulty, f_ / "out", {.shards = 6, .threads = 1}).status().code(),
            Code::kUnavailable);
  EXPECT_TRUE(says(open_source({f_ / "out"}).status(), "not finished"));
  const PackResult rest = pack(*source_, f_ / "out", {.shards = 6}).value();
  EXPECT_EQ(rest.shards_kept, 3u);
  EXPECT_EQ(files_of(f_ / "out"), files_of(f_ / "whole"));
}

TEST_F(PackTest, killed_at_any_moment_it_ends_with_the_same_bytes) {
  ASSERT_TRUE(pack(*source_, f_ / "whole", {.shards = 8}).ok());
  const auto whole = files_of(f_ / "whole");
  for (int round = 0; round < 12; ++round) {
    const std::string out = f_ / ("out" + std::to_string(round));
    const pid_t child = ::fork();
    if (child == 0) {
      uint64_t calls = 0;
      const auto die = [&](const PackProgress&) {
        if (++calls == static_cast<uint64_t>(round) + 1) ::kill(::getpid(), SIGKILL);
      };
      (void)pack(*source_, out, {.shards = 8, .threads = 1, .progress = die}).ok();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(pack(*source_, out, {.shards = 8}).ok());
    EXPECT_EQ(files_of(out), whole) << round;
  }
}

TEST_F(PackTest, counts_shards_by_bytes_ranks_and_workers) {
  EXPECT_EQ(pack(*source_, f_ / "a", {.shard_bytes = uint64_t{1} << 20}).value().shards,
            13u);  // 97 nominal 128 KiB
  EXPECT_EQ(
      pack(*source_, f_ / "b", {.shard_bytes = uint64_t{1} << 20, .for_ranks = 4, .for_workers = 2})
          .value()
          .shards,
      16u);
  EXPECT_TRUE(
      says(pack(*source_, f_ / "c", {.shards = 9, .for_ranks = 4}).status(), "multiple of 4"));
  EXPECT_TRUE(says(pack(*source_, f_ / "d", {.shards = 98}).status(), "too few"));
}

TEST_F(PackTest, writes_only_the_fields_asked_for) {
  ASSERT_TRUE(
      pack(*source_, f_ / "out", {.shards = 1, .keep_order = true, .fields = {"cls"}}).ok());
  EXPECT_EQ(read(f_ / "out")[0].fields, (std::map<std::string, std::string>{{"cls", "0"}}));
  EXPECT_TRUE(says(pack(*source_, f_ / "x", {.fields = {"label"}}).status(), "jpg, cls"));
}

TEST_F(PackTest, keys_that_a_tar_cannot_hold_twice_are_refused) {
  const auto twice = make_view(source_, {5, 5}).value();
  EXPECT_TRUE(says(pack(*twice, f_ / "out", {.shards = 1}).status(), "two samples of one tar"));
}

TEST_F(PackTest, formats_that_cannot_be_written_are_refused) {
  EXPECT_EQ(pack(*source_, f_ / "out", {.format = "files"}).status().code(), Code::kUnsupported);
  EXPECT_EQ(pack(*source_, f_ / "out", {.format = "zip"}).status().code(), Code::kInvalidArgument);
}

TEST_F(PackTest, cancel_stops_and_leaves_it_unfinished) {
  std::atomic<bool> cancel{false};
  const auto stop = [&](const PackProgress& p) { cancel = p.shards_done == 2; };
  EXPECT_EQ(
      pack(*source_, f_ / "out", {.shards = 6, .threads = 1, .progress = stop, .cancel = &cancel})
          .status()
          .code(),
      Code::kCancelled);
  cancel = false;
  EXPECT_EQ(pack(*source_, f_ / "out", {.shards = 6}).value().shards_kept, 2u);
}

TEST(Journal, lines_read_back) {
  const PackedShard shard{{"shard-000007.tar", 34567, 0x00c0ffee}, 12};
  EXPECT_EQ(parse_shard_line(shard_line(shard)), shard);
  const std::string line = shard_line(shard);
  for (size_t n = 0; n < line.size(); ++n)
    EXPECT_FALSE(parse_shard_line(line.substr(0, n)).has_value()) << n;
}

}  // namespace
}  // namespace headrace
