// SPDX-License-Identifier: Apache-2.0
#include "format/parquet/footer.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

// Writes Thrift's compact protocol: fields that follow each other, numbers below 64.
class Thrift {
 public:
  Thrift& head(int delta, int type) { return byte(delta << 4 | type); }
  Thrift& number(int delta, int64_t n) {
    head(delta, 6);
    return varint(static_cast<uint64_t>(n) << 1 ^ static_cast<uint64_t>(n >> 63));
  }
  Thrift& list(int delta, int type, size_t count) {
    return head(delta, 9).byte(static_cast<int>(count) << 4 | type);
  }
  Thrift& text(std::string_view value) {
    varint(value.size());
    for (const char c : value) byte(c);
    return *this;
  }
  Thrift& stop() { return byte(0); }
  Thrift& byte(int b) {
    out_.push_back(static_cast<std::byte>(b));
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return out_; }

 private:
  Thrift& varint(uint64_t n) {
    for (; n > 0x7f; n >>= 7) byte(static_cast<int>((n & 0x7f) | 0x80));
    return byte(static_cast<int>(n));
  }
  std::vector<std::byte> out_;
};

struct Numbers {
  int64_t rows = 7;
  int64_t group_rows = 7;
  int64_t values = 7;
  int64_t offset = 4;
  bool encrypted = false;
};

// One row group of one column, "a.b".
std::vector<std::byte> footer(const Numbers& n) {
  Thrift t;
  t.number(1, 2);                             // version
  t.list(1, 12, 1).number(4, 0).stop();       // a schema element, of which nothing is looked at
  t.number(1, n.rows).list(1, 12, 1);         // row groups
  t.list(1, 12, 1).number(2, 0).head(1, 12);  // a column chunk: its file offset, its metadata
  t.number(1, 1).list(2, 8, 2).text("a").text("b");
  t.number(2, n.values).number(1, 40).number(1, 30).number(2, n.offset).stop();
  if (n.encrypted) t.head(5, 12).stop();
  t.stop();
  t.number(1, 40).number(1, n.group_rows).stop();
  t.stop();
  return t.bytes();
}

Result<ParquetFooter> parse(const std::vector<std::byte>& bytes) {
  return parse_parquet_footer(bytes, 100, 200);
}

TEST(parquet_footer, rows_are_counted) {
  const auto found = parse(footer({}));
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found.value().rows, 7u);
  EXPECT_TRUE(found.value().encrypted.empty());
}

TEST(parquet_footer, encrypted_columns_are_named) {
  const auto found = parse(footer({.encrypted = true}));
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found.value().encrypted, std::vector<std::string>{"a.b"});
}

TEST(parquet_footer, counts_that_cannot_be_are_damage) {
  for (const Numbers& n : {Numbers{.rows = -1}, Numbers{.group_rows = -7}, Numbers{.values = -1},
                           Numbers{.offset = -4}, Numbers{.offset = 201}, Numbers{.rows = 8}})
    EXPECT_EQ(parse(footer(n)).status().code(), Code::kCorrupt);
}

TEST(parquet_footer, every_cut_is_an_error_with_an_offset) {
  const std::vector<std::byte> all = footer({});
  for (size_t n = 0; n < all.size(); ++n) {
    const auto found = parse({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)});
    ASSERT_EQ(found.status().code(), Code::kCorrupt) << n;
    EXPECT_GE(found.status().place().offset, 100) << n;
  }
}

TEST(parquet_footer, structures_within_each_other_end) {
  const std::vector<std::byte> deep(100000, std::byte{0x1c});  // field 1 is a struct, whose …
  EXPECT_EQ(parse(deep).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace headrace
