// SPDX-License-Identifier: Apache-2.0
#include "storage/http/split_read.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace headrace {
namespace {

class SplitReads : public ::testing::Test {
 protected:
  SplitReads() {
    for (int i = 0; i < 1000; ++i) content_ += static_cast<char>('a' + i * 7 % 26);
    whole_.offset = 100;
    whole_.length = 700;
    whole_.done = [this](ReadRequest&& done) {
      ++completed_;
      got_ = std::move(done);
    };
  }
  // Completes a part as a store does.
  void answer(ReadPart& part, Status status = {}) {
    const Bytes range = as_bytes(content_).subspan(part.request.offset, part.request.length);
    if (status.ok() && part.request.pieces.empty())
      std::copy(range.begin(), range.end(), part.room.data());
    if (status.ok()) part.request.version = "v1";
    for (ReadPiece& piece : part.request.pieces) {
      piece.into.resize(piece.length);
      const Bytes bytes = range.subspan(piece.begin, piece.length);
      std::copy(bytes.begin(), bytes.end(), piece.into.data());
    }
    part.request.in_pieces = !part.request.pieces.empty();
    complete(std::move(part.request), std::move(status));
  }
  std::string content_;
  ReadRequest whole_, got_;
  int completed_ = 0;
};

TEST_F(SplitReads, come_together_again_in_any_order) {
  std::vector<ReadPart> parts = split_read(whole_, 256).value();
  ASSERT_EQ(parts.size(), 3u);
  for (const size_t i : {2u, 0u, 1u}) {
    EXPECT_EQ(completed_, 0);
    answer(parts[i]);
  }
  EXPECT_EQ(completed_, 1);
  ASSERT_TRUE(got_.status.ok()) << got_.status.text();
  EXPECT_EQ(as_text(got_.into.bytes()), content_.substr(100, 700));
  EXPECT_EQ(got_.version, "v1");
}

TEST_F(SplitReads, are_cut_between_pieces) {
  for (const auto& [begin, length] : {std::pair{0, 90}, {100, 200}, {400, 0}, {420, 250}}) {
    whole_.pieces.emplace_back();
    whole_.pieces.back().begin = static_cast<uint64_t>(begin);
    whole_.pieces.back().length = static_cast<uint64_t>(length);
  }
  std::vector<ReadPart> parts = split_read(whole_, 256).value();
  ASSERT_EQ(parts.size(), 2u);
  for (ReadPart& part : parts) {
    EXPECT_TRUE(check_pieces(part.request).ok());
    answer(part);
  }
  ASSERT_TRUE(got_.status.ok()) << got_.status.text();
  for (const ReadPiece& piece : got_.pieces)
    EXPECT_EQ(as_text(piece.into.bytes()), content_.substr(100 + piece.begin, piece.length));
}

TEST_F(SplitReads, fail_once_with_what_failed_first_and_when_all_parts_are_back) {
  std::vector<ReadPart> parts = split_read(whole_, 256).value();
  answer(parts[1], corrupt("the file ends here"));
  answer(parts[0], unavailable("busy"));
  EXPECT_EQ(completed_, 0);
  answer(parts[2]);
  EXPECT_EQ(completed_, 1);
  EXPECT_EQ(got_.status.code(), Code::kCorrupt);
}

}  // namespace
}  // namespace headrace
