// SPDX-License-Identifier: Apache-2.0
#include "storage/stage/file_copier.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "storage/memory.h"
#include "storage/stage/stage.h"
#include "storage/test_folder.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPiece = 512 << 10;

class FileCopier : public ::testing::Test {
 protected:
  FileCopier() {
    std::mt19937 random(1);
    for (const size_t bytes : {size_t{0}, size_t{1}, kPiece - 1, kPiece, kPiece + 1,
                               3 * kPiece + 77, (size_t{33} << 20) + 7}) {
      std::string text(bytes, '\0');
      for (size_t i = 0; i < bytes; i += 61) text[i] = static_cast<char>(random());
      const std::string path = "mem://d/" + std::to_string(bytes);
      source_->put(path, text);
      files_[path] = text;
    }
  }
  StagePlan plan(const Store& store) const {
    std::vector<std::string> paths;
    for (const auto& [path, text] : files_) paths.push_back(path);
    return plan_stage(store, paths).value();
  }
  void expect_all(const std::string& folder) const {
    for (const auto& [path, text] : files_)
      EXPECT_TRUE(TestFolder::read(folder + path.substr(path.rfind('/'))) == text) << path;
  }

  TestFolder folder_;
  std::shared_ptr<MemoryStore> source_ = std::make_shared<MemoryStore>();
  std::map<std::string, std::string> files_;
};

TEST(StagePlans, files_right_under_their_scheme_have_its_root_in_common) {
  for (const auto& [first, second] : {std::pair<std::string, std::string>{"mem://a", "mem://b/c"},
                                      {"mem://a", "mem://b"},
                                      {"/a", "/b/c"},
                                      {"a", "b/c"}}) {
    MemoryStore store;
    store.put(first, "1");
    store.put(second, "2");
    const StagePlan plan = plan_stage(store, {first, second}).value();
    ASSERT_EQ(plan.files.size(), 2u);
    EXPECT_EQ(plan.files[0].name, "a");
    EXPECT_EQ(plan.files[1].name, second.ends_with("c") ? "b/c" : "b");
  }
}

TEST(StagePlans, names_stay_in_the_folder_and_apart) {
  MemoryStore store;
  const auto plan_of = [&store](std::vector<std::string> paths) {
    for (const std::string& path : paths) store.put(path, "1");
    return plan_stage(store, std::move(paths));
  };
  EXPECT_EQ(plan_of({"mem://b/d/x/../../../e", "mem://b/d/f"}).status().code(), Code::kUnsupported);
  EXPECT_EQ(plan_of({"mem://b/d//f", "mem://b/d/f"}).status().code(), Code::kUnsupported);
  const StagePlan signed_one =
      plan_of({"https://h/d/a.tar?X-Amz-Credential=k/2026&X-Amz-Signature=canary"}).value();
  EXPECT_EQ(signed_one.files[0].name, "a.tar");
}

TEST_F(FileCopier, files_are_the_same_and_so_are_their_checksums_however_they_come) {
  const LatencyStore later(source_, {.latency = 2ms});
  for (const unsigned streams : {0u, 1u, 3u}) {
    const std::string near = folder_ / ("near" + std::to_string(streams));
    const std::string far = folder_ / ("far" + std::to_string(streams));
    ASSERT_TRUE(
        stage_files(*source_, plan(*source_), near, {.streams = streams, .verify = true}).ok());
    ASSERT_TRUE(stage_files(later, plan(later), far, {.streams = streams, .verify = true}).ok());
    expect_all(near);
    expect_all(far);
    for (const auto& [path, text] : files_) {
      const std::string name = path.substr(path.rfind('/'));
      EXPECT_EQ(checksum_of_copy(near + name, text.size()).value(),
                checksum_of_copy(far + name, text.size()).value());
    }
  }
}

TEST_F(FileCopier, a_damaged_copy_is_found_and_copied_again) {
  const std::string to = folder_ / "to";
  const StagePlan all = plan(*source_);
  ASSERT_TRUE(stage_files(*source_, all, to, {}).ok());
  const std::string damaged = to + "/" + std::to_string(kPiece + 1);
  const auto time = std::filesystem::last_write_time(damaged);
  std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kPiece);
  file << static_cast<char>(files_["mem://d/" + std::to_string(kPiece + 1)][kPiece] ^ 1);
  file.close();
  std::filesystem::last_write_time(damaged, time);
  EXPECT_EQ(stage_files(*source_, all, to, {.verify = true}).status().code(), Code::kCorrupt);
  ASSERT_TRUE(stage_files(*source_, all, to, {.verify = true}).ok());
  expect_all(to);
}

TEST_F(FileCopier, a_read_that_fails_later_ends_it_and_the_same_call_goes_on) {
  const std::string to = folder_ / "to";
  for (const uint64_t fails : {1u, 2u, 9u, 40u}) {
    const LatencyStore store(
        std::make_shared<FailLaterStore>(
            source_, FailLaterOptions{.fail_read = fails, .and_all_later = true, .latency = 1ms}),
        {.latency = 1ms});
    EXPECT_EQ(stage_files(store, plan(store), to, {}).status().code(), Code::kUnavailable);
  }
  const LatencyStore good(source_, {.latency = 1ms});
  ASSERT_TRUE(stage_files(good, plan(good), to, {.verify = true}).ok());
  expect_all(to);
}

TEST_F(FileCopier, one_that_is_ended_gives_up_what_is_under_way) {
  const LatencyStore store(source_, {.latency = 1ms});
  std::atomic<bool> cancel{false};
  const StageOptions options{.progress = [&](uint64_t done) { cancel = done > kPiece; },
                             .cancel = &cancel};
  EXPECT_EQ(stage_files(store, plan(store), folder_ / "to", options).status().code(),
            Code::kCancelled);
  EXPECT_EQ(store.under_way(), 0u);
}

TEST_F(FileCopier, a_file_that_cannot_be_written_is_named) {
  const LatencyStore store(source_, {.latency = 1ms});
  const StagePlan all = plan(store);
  std::vector<const StageFile*> files;
  for (const StageFile& file : all.files) files.push_back(&file);
  const auto copy = [&](const Store& from) {
    return copy_files(from, files,
                      {.path = [&](const StageFile&) { return folder_ / "missing/file"; },
                       .finish = [](const StageFile&, int, uint32_t) { return Status(); }});
  };
  EXPECT_EQ(copy(store).code(), Code::kNotFound);
  EXPECT_EQ(copy(*source_).code(), Code::kNotFound);
}

}  // namespace
}  // namespace headrace
