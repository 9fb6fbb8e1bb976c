// SPDX-License-Identifier: Apache-2.0
#include "array/tree.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace {
namespace {

Tree example() {
  Tree out = Tree::map();
  out.set("null", Tree());
  out.set("yes", Tree(true));
  out.set("count", Tree(int64_t{-17}));
  out.set("scale", Tree(-0.0));
  out.set("files", Tree::texts({"a/c/0/0", "a/c/0/1", "a/c/0/10", "b"}));
  out.set("fill", Tree::bytes(as_bytes(std::string_view("\0\1\xff", 3))));
  std::vector<uint64_t> places;
  for (uint64_t i = 0; i < 1000; ++i)
    places.insert(places.end(), {0, i % 7 == 0, 4096 + i * 512, i == 500 ? ~uint64_t{0} : 512});
  out.set("places", Tree::numbers("<u8", {1000, 4}, std::as_bytes(std::span(places))));
  const float one = 0.5F;
  out.set("attribute", Tree::numbers("<f4", {}, std::as_bytes(std::span(&one, 1))));
  Tree inner = Tree::map();
  inner.set("shape", Tree::ints({3, 1 << 20}));
  out.set("inner", Tree::list({inner, inner}));
  return out;
}

std::vector<std::byte> packed(const Tree& tree) {
  std::vector<std::byte> out;
  pack_tree(tree, out);
  return out;
}

TEST(TreeTest, comes_back_as_it_was) {
  const Tree tree = example();
  const Result<Tree> back = unpack_tree(packed(tree));
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back.value(), tree);
  EXPECT_TRUE(std::signbit(back.value().find("scale")->real()));
}

TEST(TreeTest, chunks_take_a_few_bytes_each) {
  EXPECT_LT(packed(example()).size(), 1000u * 6);
}

TEST(TreeTest, any_cut_or_changed_byte_is_survived) {
  const std::vector<std::byte> whole = packed(example());
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(unpack_tree(Bytes(whole).first(n)).ok()) << n;
  for (size_t n = 0; n < whole.size(); ++n)
    for (const int bit : {0, 3, 7}) {
      std::vector<std::byte> bad = whole;
      bad[n] ^= std::byte(1 << bit);
      (void)unpack_tree(bad);  // may be another tree, and no more than that
    }
}

TEST(TreeTest, depth_is_bounded) {
  Tree deep;
  for (int i = 0; i < 100; ++i) deep = Tree::list({deep});
  EXPECT_FALSE(unpack_tree(packed(deep)).ok());
}

}  // namespace
}  // namespace headrace
