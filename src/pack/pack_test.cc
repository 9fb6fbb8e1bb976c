// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "open/expand.h"
#include "open/test_data.h"
#include "pack/check.h"
#include "pack/journal.h"
#include "storage/fault.h"
#include "storage/memory.h"
#include "storage/open_store.h"
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

TEST_F(PackTest, a_pack_is_read_and_checked_wherever_it_lies_and_written_here) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 3, .keep_order = true}).ok());
  const auto memory = std::make_shared<MemoryStore>();
  for (const auto& [name, content] : files_of(f_ / "out"))
    memory->put("far://bucket/out/" + name, content);
  const ScopedStore far("far", memory);
  EXPECT_TRUE(check_pack("far://bucket/out/").value()->problems.empty());
  memory->put("far://bucket/out/shard-000001.tar", "short");
  const PackCheck check = check_pack("far://bucket/out").value().value();
  ASSERT_EQ(check.problems.size(), 1u);
  EXPECT_TRUE(check.problems[0].starts_with("far://bucket/out/shard-000001.tar"))
      << check.problems[0];
  const Status written = pack(*source_, "far://bucket/other").status();
  EXPECT_EQ(written.code(), Code::kUnsupported);
  EXPECT_TRUE(says(written, "far://bucket/other")) << written.text();
}

TEST_F(PackTest, goes_on_after_an_error_with_the_same_bytes) {
  ASSERT_TRUE(pack(*source_, f_ / "whole", {.shards = 6}).ok());
  auto store = std::make_shared<FaultStore>(TestFolder::store());
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
  EXPECT_TRUE(says(pack(*twice, f_ / "out", {.shards = 1}).status(), "holds a key once"));
}

TEST_F(PackTest, formats_that_cannot_be_written_are_refused) {
  EXPECT_EQ(pack(*source_, f_ / "out", {.format = "files"}).status().code(), Code::kUnsupported);
  EXPECT_EQ(pack(*source_, f_ / "out", {.format = "rar"}).status().code(), Code::kInvalidArgument);
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

TEST_F(PackTest, the_bytes_do_not_depend_on_the_memory) {
  ASSERT_TRUE(pack(*source_, f_ / "much", {.shards = 4}).ok());
  for (const uint64_t memory : {1u, 700u, 5000u, 40000u}) {
    const std::string out = f_ / ("out" + std::to_string(memory));
    ASSERT_TRUE(pack(*source_, out, {.shards = 4, .memory_bytes = memory}).ok());
    EXPECT_EQ(files_of(out), files_of(f_ / "much")) << memory;
  }
}

TEST_F(PackTest, fields_are_dropped_and_renamed) {
  ASSERT_TRUE(
      pack(*source_, f_ / "a", {.shards = 2, .drop = {"jpg"}, .rename = {{"cls2", "cls"}}}).ok());
  EXPECT_EQ(read(f_ / "a")[0].fields.size(), 1u);
  EXPECT_TRUE(read(f_ / "a")[0].fields.contains("cls2"));
  EXPECT_TRUE(
      says(pack(*source_, f_ / "a", {.shards = 2, .drop = {"jpg"}}).status(), "another pack"));
  EXPECT_TRUE(says(pack(*source_, f_ / "b", {.drop = {"jpgs"}}).status(), "did you mean 'jpg'"));
  EXPECT_TRUE(
      says(pack(*source_, f_ / "b", {.rename = {{"x", "clas"}}}).status(), "did you mean 'cls'"));
  EXPECT_TRUE(says(pack(*source_, f_ / "b", {.rename = {{"cls", "jpg"}}}).status(), "two fields"));
  EXPECT_TRUE(says(pack(*source_, f_ / "b", {.drop = {"jpg", "cls"}}).status(), "nothing is left"));
  EXPECT_TRUE(says(pack(*source_, f_ / "b", {.drop = {"jpg"}, .rename = {{"png", "jpg"}}}).status(),
                   "not packed"));
}

TEST_F(PackTest, a_companion_belongs_to_its_shard) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.format = "recordio", .shards = 3}).ok());
  EXPECT_EQ(check_pack(f_ / "out").value()->files, 6u);
  EXPECT_TRUE(check_pack(f_ / "out").value()->problems.empty());
  const std::string index = TestFolder::read(f_ / "out/shard-000001.idx");
  f_.put("out/shard-000001.idx", index.substr(1));
  EXPECT_TRUE(says(pack(*source_, f_ / "out", {.format = "recordio", .shards = 3}).status(),
                   "1 of its 3 shards"));
  EXPECT_EQ(check_pack(f_ / "out").value()->problems.size(), 1u);
}

TEST_F(PackTest, a_changed_byte_is_found) {
  ASSERT_TRUE(pack(*source_, f_ / "out", {.shards = 3}).ok());
  EXPECT_FALSE(check_pack(f_ / "data").value().has_value());
  std::string shard = TestFolder::read(f_ / "out/shard-000002.tar");
  shard[700] ^= 1;
  f_.put("out/shard-000002.tar", shard);
  const PackCheck check = check_pack(f_ / "out").value().value();
  ASSERT_EQ(check.problems.size(), 1u);
  EXPECT_NE(check.problems[0].find("shard-000002.tar"), std::string::npos);
  EXPECT_EQ(check.samples, 97u);
}

TEST_F(PackTest, an_estimate_writes_nothing) {
  const PackEstimate estimate = estimate_pack(*source_, f_ / "out/deep", {.shards = 4}).value();
  EXPECT_EQ(estimate.samples, 97u);
  EXPECT_EQ(estimate.shards, 4u);
  EXPECT_NEAR(static_cast<double>(estimate.sample_bytes), 97 * 13 / 2 + 20, 40);
  EXPECT_GT(estimate.free_bytes, 0u);
  EXPECT_FALSE(std::filesystem::exists(f_ / "out"));
}

TEST_F(PackTest, what_cannot_be_decoded_is_named) {
  const Status s = pack(*source_, f_ / "out", {.shards = 2, .recode = {.max_side = 10}}).status();
  EXPECT_EQ(s.code(), Code::kCorrupt);
  EXPECT_TRUE(says(s, "field 'jpg'")) << s.text();
  EXPECT_TRUE(says(s, ".JPEG")) << s.text();
}

// 40 row groups of 25 samples, which open only as a whole; counts how often they do.
class Groups final : public Source {
 public:
  static constexpr uint64_t kGroups = 40, kRows = 25, kLength = 100;
  Groups() {
    store_.put("file", std::string(kGroups * 10, 'x'));
    for (uint64_t g = 0; g < kGroups; ++g) blocks_.samples.push_back(kRows);
    blocks_.bytes = size() * kLength;
  }
  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return kGroups * kRows; }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return {1, 2}; }
  Status needs(const SampleAsk& ask, Request& out) const override {
    const uint64_t sample = ask.sample;
    out.clear();
    out.units.push_back({0, 1, sample / kRows * 10, 10, kRows * kLength});
    out.pieces.push_back({0, sample % kRows * kLength, kLength});
    out.first_piece.push_back(1);
    out.key = key(sample);
    return {};
  }
  Status decode_unit(const Unit&, Bytes, Buffer& decoded) const override {
    ++opened;
    decoded.resize(kRows * kLength);
    std::fill_n(decoded.data(), decoded.size(), std::byte{'r'});
    return {};
  }
  const Store& store() const override { return store_; }
  std::string file_path(uint32_t) const override { return "file"; }
  std::string key(uint64_t sample) const override { return "k" + std::to_string(sample); }

  mutable std::atomic<int> opened{0};

 private:
  const Schema schema_{{.name = "bin"}};
  Blocks blocks_;
  MemoryStore store_;
};

TEST_F(PackTest, row_groups_are_opened_once_for_many_shards) {
  const Groups groups;
  ASSERT_TRUE(pack(groups, f_ / "a", {.shards = 20}).ok());
  EXPECT_LE(groups.opened.exchange(0), 40 + 16);  // 16 for the estimate; not 20 * 40
  // Memory for a fifth of the data: five times over the groups or so, and the same bytes.
  ASSERT_TRUE(pack(groups, f_ / "b", {.shards = 20, .memory_bytes = 60000}).ok());
  EXPECT_LE(groups.opened, 6 * 40 + 16);
  EXPECT_EQ(files_of(f_ / "a"), files_of(f_ / "b"));
}

TEST(Journal, lines_with_companions_read_back) {
  const PackedShard shard{
      {"shard-000007.rec", 34567, 0x00c0ffee}, 12, PackedFile{"shard-000007.idx", 99, 0x1234}};
  EXPECT_EQ(parse_shard_line(shard_line(shard)), shard);
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
