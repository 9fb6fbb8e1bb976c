// SPDX-License-Identifier: Apache-2.0
#include "codec/json_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace headrace {
namespace {

using Shape = std::vector<int64_t>;

TEST(JsonArray, reads_lists_of_numbers) {
  const auto one = parse_json_array(as_bytes(std::string_view(" [1, -2,\n3] ")));
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one.value().shape, (Shape{3}));
  EXPECT_EQ(one.value().integers, (std::vector<int64_t>{1, -2, 3}));
  const auto two = parse_json_array(as_bytes(std::string_view("[[1,2.5],[true,-1e3]]")));
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two.value().shape, (Shape{2, 2}));
  EXPECT_EQ(two.value().reals, (std::vector<double>{1, 2.5, 1, -1000}));
  const auto odd = parse_json_array(as_bytes(std::string_view("[NaN,-Infinity]")));
  ASSERT_TRUE(odd.ok());
  EXPECT_TRUE(std::isnan(odd.value().reals[0]));
  const auto none = parse_json_array(as_bytes(std::string_view("[]")));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none.value().shape, (Shape{0}));
  EXPECT_EQ(parse_json_array(as_bytes(std::string_view("[[],[]]"))).value().shape, (Shape{2, 0}));
  EXPECT_EQ(parse_json_array(as_bytes(std::string_view("[[[1],[2]],[[3],[4]]]"))).value().shape,
            (Shape{2, 2, 1}));
}

TEST(JsonArray, refuses_everything_else) {
  for (const std::string_view text : {"",
                                      "1",
                                      "[",
                                      "[1",
                                      "[1,",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "[1]]",
                                      "[1] 2",
                                      "[[1],2]",
                                      "[1,[2]]",
                                      "[[1,2],[3]]",
                                      "[[],[1]]",
                                      "[[],1]",
                                      "[[],NaN]",
                                      "[[[]],[1]]",
                                      "[\"a\"]",
                                      "[null]",
                                      "[{}]",
                                      "[1e999x]",
                                      "[99999999999999999999]",
                                      "[9007199254740993, 0.5]",
                                      "[0.5, 9007199254740993]",
                                      "[--1]",
                                      "[+]"}) {
    EXPECT_FALSE(parse_json_array(as_bytes(text)).ok()) << text;
  }
  EXPECT_FALSE(parse_json_array(as_bytes(std::string(1000, '['))).ok());
}

TEST(JsonArray, any_cut_is_refused) {
  const std::string text = "[[1, 2.5], [3, -4e2], [true, NaN]]";
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(parse_json_array(as_bytes(std::string_view(text).substr(0, n))).ok()) << n;
}

TEST(JsonArray, changed_bytes_give_an_error_or_as_many_numbers_as_the_shape_says) {
  const std::string text = "[[[1, 2.5], [3, -4e2]], [[true, NaN], [0, 9]]]";
  const std::string_view other = "[],0-.e \"tN{9";
  for (size_t at = 0; at < text.size(); ++at)
    for (const char c : other)
      for (size_t then = 0; then < text.size(); then += 5) {
        std::string changed = text;
        changed[at] = c;
        changed[then] = other[(at + then) % other.size()];
        const auto array = parse_json_array(as_bytes(changed));
        if (!array.ok()) continue;
        uint64_t elements = 1;
        for (const int64_t extent : array.value().shape) elements *= static_cast<uint64_t>(extent);
        EXPECT_EQ(elements, array.value().size()) << changed;
      }
}

}  // namespace
}  // namespace headrace
