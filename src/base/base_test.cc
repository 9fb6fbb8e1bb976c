// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/shown_url.h"
#include "base/status.h"

namespace headrace {
namespace {

TEST(StatusTest, ReadsAsOneLineWithItsPlace) {
  const Status s = corrupt("bad checksum").at(5120).in_file("a.tar").at(7).of_sample(3, "cat");
  EXPECT_EQ(s.text(), "a.tar, offset 5120, sample 3, key 'cat': bad checksum");
  EXPECT_EQ(s.code(), Code::kCorrupt);
}

TEST(StatusTest, ErrnoGetsTheCodeThatSaysWhatToDo) {
  EXPECT_EQ(from_errno(ENOENT, "open").code(), Code::kNotFound);
  EXPECT_EQ(from_errno(EACCES, "open").code(), Code::kPermission);
  EXPECT_EQ(from_errno(EIO, "read").code(), Code::kUnavailable);
  EXPECT_EQ(from_errno(EMFILE, "open").code(), Code::kExhausted);
}

TEST(RngTest, IsAFunctionOfItsNames) {
  EXPECT_EQ(Rng(Key(1).with(2)).next(), Rng(Key(1).with(2)).next());
  EXPECT_NE(Key(1).with(2).with(3), Key(1).with(3).with(2));
  EXPECT_NE(Key(1).with("ab").with("c"), Key(1).with("a").with("bc"));
}

// Every order ever drawn hangs on these numbers.
TEST(RngTest, NumbersAreFrozen) {
  Rng rng(Key(42).with(7).with("crop"));
  EXPECT_EQ(rng.next(), 12675124913128985213u);
  EXPECT_EQ(rng.below(1000), 266u);
}

TEST(RngTest, BelowIsUniform) {
  Rng rng(Key(5));
  int count[3] = {};
  for (int i = 0; i < 300000; ++i) ++count[rng.below(3)];
  for (const int c : count) EXPECT_NEAR(c, 100000, 1500);
}

TEST(Crc32cTest, MatchesThePublishedCheckValue) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(as_bytes("6789"), crc32c(as_bytes("12345"))), 0xe3069283u);
}

TEST(ShownUrlTest, HidesSignaturesAndKeepsWildcards) {
  EXPECT_EQ(shown_urls("https://h/a.tar?X-Amz-Signature=canary&b=1: 403"),
            "https://h/a.tar?...: 403");
  EXPECT_EQ(shown_urls("'http://h/a?sig=canary' and 'https://h/b?token=canary'"),
            "'http://h/a?...' and 'https://h/b?...'");
  EXPECT_EQ(shown_urls("nothing matches 'https://h/train-?.tar'"),
            "nothing matches 'https://h/train-?.tar'");
  EXPECT_EQ(without_query("https://h/train-?.tar?sig=x"), "https://h/train-?.tar");
  EXPECT_EQ(without_query("s3://bucket/a?b=c"), "s3://bucket/a?b=c");
  EXPECT_EQ(without_signature("https://h/get?id=7&X-Amz-Signature=x&v=2"),
            "https://h/get?id=7&v=2");
  EXPECT_EQ(without_signature("https://h/a?Expires=1&Signature=x&AWSAccessKeyId=k"), "https://h/a");
  EXPECT_EQ(without_signature("https://h/a?sv=2024&sr=b&sig=x"), "https://h/a");
  EXPECT_EQ(without_signature("https://h/a?st=1&sr=b"), "https://h/a?st=1&sr=b");
  EXPECT_EQ(without_signature("https://h/train-?.tar"), "https://h/train-?.tar");
  EXPECT_EQ(without_signature("s3://b/a?sig=1"), "s3://b/a?sig=1");
  const Status s = corrupt("at https://h/c?sig=canary it ends").in_file("https://h/d?sig=canary");
  EXPECT_EQ(s.text().find("canary"), std::string::npos) << s.text();
  EXPECT_EQ(s.place().file, "https://h/d?...");
}

TEST(HashTest, PiecesAreKeptApart) {
  const auto h = [](std::string_view a, std::string_view b) {
    return Hasher().add(a).add(b).finish();
  };
  EXPECT_NE(h("ab", "c"), h("a", "bc"));
  Hash128 back;
  ASSERT_TRUE(Hash128::parse(h("a", "b").hex(), back));
  EXPECT_EQ(back, h("a", "b"));
  EXPECT_FALSE(Hash128::parse("xyz", back));
}

}  // namespace
}  // namespace headrace
