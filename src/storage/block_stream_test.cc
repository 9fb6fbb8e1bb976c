// SPDX-License-Identifier: Apache-2.0
#include "storage/block_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "storage/memory.h"
#include "storage/test_stores.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;
constexpr uint64_t kBlock = BlockStream::kBlockBytes;

std::string some_bytes(size_t size) {
  std::string out(size, '\0');
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 31 + i / 1000);
  return out;
}

class Streamed : public ::testing::Test {
 protected:
  explicit Streamed(size_t size = 40 << 20) : content_(some_bytes(size)) {
    memory_->put("f", content_);
    far_ = std::make_shared<LatencyStore>(memory_, LatencyOptions{.latency = 5ms});
  }
  void expect(BlockStream& stream, uint64_t offset, uint64_t length) {
    Bytes got;
    ASSERT_TRUE(stream.bytes(offset, length, got).ok());
    ASSERT_EQ(as_text(got), std::string_view(content_).substr(offset, length)) << offset;
  }
  const std::string content_;
  const std::shared_ptr<MemoryStore> memory_ = std::make_shared<MemoryStore>();
  std::shared_ptr<LatencyStore> far_;
};

TEST_F(Streamed, headers_between_data_come_as_they_lie) {
  const FailLaterStore counted(memory_, {.fail_read = 0});
  BlockStream stream(counted, "f", content_.size(), {.ahead = 4});
  const uint64_t blocks = (content_.size() + kBlock - 1) / kBlock;
  for (uint64_t at = 0; at + 512 <= content_.size(); at += 300'000) {
    expect(stream, at, 512);
    const uint64_t begun = (at + 511) / kBlock - (at % kBlock + 512 > kBlock ? 1 : 0) + 5;
    ASSERT_EQ(counted.reads(), std::min(blocks, begun)) << "four beyond the first that is needed";
  }
}

TEST_F(Streamed, what_lies_in_two_blocks_is_joined) {
  BlockStream stream(*far_, "f", content_.size(), {.ahead = 2});
  expect(stream, kBlock - 100, 300);
  expect(stream, kBlock + 50, 2 * kBlock);
}

TEST_F(Streamed, who_jumps_reads_little) {
  auto counted = std::make_shared<FailLaterStore>(memory_, FailLaterOptions{.fail_read = 0});
  BlockStream stream(*counted, "f", content_.size(), {.ahead = 1});
  expect(stream, 0, 512);
  expect(stream, 20 << 20, 512);
  expect(stream, 36 << 20, 512);
  expect(stream, 0, 512);  // and back
  EXPECT_LE(counted->reads(), 5u);
}

TEST_F(Streamed, a_read_that_fails_is_told_when_it_is_reached) {
  FailLaterStore bad(memory_, {.fail_read = 3});
  BlockStream stream(bad, "f", content_.size(), {.ahead = 4});
  expect(stream, 0, 512);
  expect(stream, kBlock, 512);
  Bytes got;
  EXPECT_EQ(stream.bytes(2 * kBlock, 512, got).code(), Code::kUnavailable);
}

TEST_F(Streamed, what_was_streamed_is_not_fetched_again) {
  auto counted = std::make_shared<FailLaterStore>(memory_, FailLaterOptions{.fail_read = 0});
  KeptBlocks kept(counted, 16 << 20);
  {
    BlockStream stream(kept, "f", content_.size(), {.ahead = 4, .kept = &kept});
    for (uint64_t at = 0; at + 512 <= content_.size(); at += 300'000) expect(stream, at, 512);
  }
  EXPECT_EQ(kept.held_bytes(), uint64_t{16} << 20);
  const uint64_t before = counted->reads();
  Buffer got;
  for (uint64_t at = 0; at < 12 << 20; at += 1 << 20) {
    ASSERT_TRUE(kept.read_at("f", at, 1 << 20, got).ok());
    ASSERT_EQ(as_text(got.bytes()), std::string_view(content_).substr(at, 1 << 20));
  }
  EXPECT_EQ(counted->reads(), before);
  EXPECT_EQ(kept.held_bytes(), uint64_t{4} << 20);                    // what was used up is gone
  ASSERT_TRUE(kept.read_at("f", (15 << 20) + 1, 2 << 20, got).ok());  // half of it was kept
  ASSERT_EQ(as_text(got.bytes()), std::string_view(content_).substr((15 << 20) + 1, 2 << 20));
  EXPECT_EQ(counted->reads(), before + 1);
}

TEST_F(Streamed, what_neighbours_share_is_kept_for_both) {
  auto counted = std::make_shared<FailLaterStore>(memory_, FailLaterOptions{.fail_read = 0});
  KeptBlocks kept(counted, 64 << 20);
  {
    BlockStream stream(kept, "f", content_.size(), {.ahead = 4, .kept = &kept});
    for (uint64_t at = 0; at + 512 <= content_.size(); at += 300'000) expect(stream, at, 512);
  }
  const uint64_t before = counted->reads();
  Buffer got;
  constexpr uint64_t kRun =
      kBlock + 40'000;  // as blocks of samples lie, not as those of the stream
  for (const uint64_t run : {3u, 1u, 2u, 0u, 5u, 4u}) {
    ASSERT_TRUE(kept.read_at("f", run * kRun, kRun, got).ok());
    ASSERT_EQ(as_text(got.bytes()), std::string_view(content_).substr(run * kRun, kRun)) << run;
  }
  EXPECT_EQ(counted->reads(), before);
}

TEST_F(Streamed, kept_blocks_of_another_version_are_not_used) {
  KeptBlocks kept(memory_, 16 << 20);
  auto other = std::make_shared<Buffer>(1000);
  kept.keep("f", 0, "\"old\"", other);
  ReadRequest request{.path = "f", .offset = 0, .length = 100, .version = "\"new\""};
  Status status;
  request.done = [&status](ReadRequest&& done) { status = done.status; };
  kept.read({&request, 1});
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.text();  // as the store says, not old bytes
}

}  // namespace
}  // namespace headrace
