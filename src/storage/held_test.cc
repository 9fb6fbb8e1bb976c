// SPDX-License-Identifier: Apache-2.0
#include "storage/held.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "storage/fault.h"
#include "storage/memory.h"
#include "storage/sink.h"
#include "storage/test_folder.h"

namespace headrace {
namespace {

class HeldTest : public ::testing::Test {
 protected:
  HeldTest() {
    memory_->put("a", std::string_view("first file"));
    memory_->put("b", std::string_view(""));
    memory_->put("c", std::string_view("third"));
  }
  Result<HeldFiles> hold(const std::shared_ptr<const Store>& store) {
    return hold_files(store, {"c", "a", "b", "a"}, {.folder = folder_.path()});
  }
  // Files but for locks, each of which lies beside one.
  size_t left() const {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      n += entry.path().extension() != ".lock";
    return n;
  }
  size_t locks() const {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      n += entry.path().extension() == ".lock";
    return n;
  }
  static std::string text(const Store& store, const std::string& path) {
    return std::string(as_text(store.read_all(path).value().bytes()));
  }

  std::shared_ptr<MemoryStore> memory_ = std::make_shared<MemoryStore>();
  TestFolder folder_;
};

TEST_F(HeldTest, ReadsAreThoseOfTheStoreAndTouchItNoMore) {
  const auto counted = std::make_shared<FaultStore>(memory_);
  const HeldFiles held = hold(counted).value();
  const uint64_t reads = counted->reads();
  EXPECT_EQ(text(*held.store, "a"), "first file");
  EXPECT_EQ(text(*held.store, "b"), "");
  Buffer part;
  EXPECT_TRUE(held.store->read_at("c", 1, 3, part).ok());
  EXPECT_EQ(as_text(part.bytes()), "hir");
  EXPECT_EQ(held.store->read_at("c", 3, 3, part).code(), Code::kCorrupt);
  EXPECT_EQ(held.store->read_at("c", ~uint64_t{0} - 2, 3, part).code(), Code::kCorrupt);
  EXPECT_EQ(held.store->stat("c").value().bytes, 5u);
  EXPECT_EQ(counted->reads(), reads);
}

TEST_F(HeldTest, WhatIsHeldIsLentWhereItLies) {
  const HeldFiles held = hold(memory_).value();
  EXPECT_EQ(as_text(held.store->pin("a", 6, 4)->bytes()), "file");
  EXPECT_EQ(as_text(held.store->pin("c", 0, kWholeFile)->bytes()), "third");
  EXPECT_EQ(held.store->pin("b", 0, kWholeFile)->bytes().size(), 0u);
  EXPECT_FALSE(held.store->pin("a", 6, 5).has_value());
  EXPECT_FALSE(held.store->pin("a", ~uint64_t{0} - 2, 3).has_value());
  memory_->put("d", std::string_view("not held"));
  EXPECT_FALSE(held.store->pin("d", 0, 3).has_value());
}

// More than a huge page, and no whole number of them; in memory, where the system may give some.
TEST_F(HeldTest, LargeFilesAreHeldByteForByte) {
  std::vector<std::byte> large((size_t{5} << 20) + 123);
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
  memory_->put("large", as_text(large));
  for (const std::string& folder : {folder_.path(), std::string("/dev/shm")}) {
    const auto hold_large = [&] {
      return hold_files(memory_, {"a", "large", "c"}, {.folder = folder}).value();
    };
    const HeldFiles first = hold_large();
    const HeldFiles second = hold_large();
    EXPECT_TRUE(second.was_there);
    for (const HeldFiles* held : {&first, &second}) {
      EXPECT_EQ(as_text(held->store->pin("large", 0, kWholeFile)->bytes()), as_text(large));
      EXPECT_EQ(text(*held->store, "a") + text(*held->store, "c"), "first filethird");
    }
  }
}

TEST_F(HeldTest, APinOutlivesTheStore) {
  std::optional<Pin> pin;
  {
    const HeldFiles held = hold(memory_).value();
    pin = held.store->pin("a", 0, kWholeFile);
    EXPECT_EQ(left(), 1u);
  }
  EXPECT_EQ(as_text(pin->bytes()), "first file");
  EXPECT_EQ(left(), 1u);
  pin.reset();
  EXPECT_EQ(left() + locks(), 0u);
}

TEST_F(HeldTest, OneFileForAllAndTheLastRemovesIt) {
  {
    const HeldFiles first = hold(memory_).value();
    const HeldFiles second = hold(memory_).value();
    EXPECT_TRUE(first.is_shared && second.is_shared);
    EXPECT_FALSE(first.was_there);
    EXPECT_TRUE(second.was_there);
    EXPECT_EQ(left(), 1u);
    EXPECT_EQ(locks(), 1u);
  }
  EXPECT_EQ(left() + locks(), 0u);
}

TEST_F(HeldTest, ChangedFilesAreOthers) {
  const HeldFiles first = hold(memory_).value();
  memory_->put("c", std::string_view("THIRD"));
  const HeldFiles second = hold(memory_).value();
  EXPECT_FALSE(second.was_there);
  EXPECT_EQ(text(*first.store, "c"), "third");
  EXPECT_EQ(text(*second.store, "c"), "THIRD");
}

TEST_F(HeldTest, AFailedReadLeavesNothingBehind) {
  const auto faulty = std::make_shared<FaultStore>(memory_);
  faulty->add({.path = "c", .fail_read = 1});
  EXPECT_EQ(hold(faulty).status().code(), Code::kUnavailable);
  EXPECT_EQ(left() + locks(), 0u);
}

TEST_F(HeldTest, WhatAKilledProcessLeftIsUsedOrSwept) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto held = new HeldFiles(hold(memory_).value());
    ::_exit(held->is_shared ? 0 : 1);  // no destructor, no handler: as a kill
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(left(), 1u);
  EXPECT_TRUE(hold(memory_).value().was_there);
  EXPECT_EQ(left(), 0u);
}

TEST_F(HeldTest, WhatIsNotCompleteIsReplacedAndForeignFilesStay) {
  std::string name;
  {
    const HeldFiles held = hold(memory_).value();
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().extension() != ".lock") name = entry.path().string();
  }
  ASSERT_TRUE(write_file(name, as_bytes("rubbish")).ok());
  ASSERT_TRUE(write_file(name + ".part", as_bytes("half")).ok());
  ASSERT_TRUE(write_file(folder_.path() + "/someone-elses", as_bytes("keep")).ok());
  {
    const HeldFiles held = hold(memory_).value();
    EXPECT_FALSE(held.was_there);
    EXPECT_EQ(text(*held.store, "c"), "third");
    EXPECT_EQ(left(), 2u);
  }
  EXPECT_EQ(left(), 1u);
}

TEST_F(HeldTest, WithoutAFolderTheProcessKeepsItsOwnAndSaysSo) {
  const HeldFiles held =
      hold_files(memory_, {"a"}, {.folder = folder_.path() + "/missing"}).value();
  EXPECT_FALSE(held.is_shared);
  EXPECT_NE(held.notice.find("missing"), std::string::npos) << held.notice;
  EXPECT_EQ(text(*held.store, "a"), "first file");
}

TEST_F(HeldTest, TooMuchNamesBothNumbers) {
  memory_->put("large", std::vector<std::byte>(3 << 20));
  const Status s =
      hold_files(memory_, {"large"}, {.folder = folder_.path(), .most_bytes = 2 << 20}).status();
  EXPECT_EQ(s.code(), Code::kExhausted);
  EXPECT_NE(s.text().find("3 MiB"), std::string::npos) << s.text();
  EXPECT_NE(s.text().find("2 MiB"), std::string::npos) << s.text();
}

}  // namespace
}  // namespace headrace
