// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Json, a_text_becomes_a_tree) {
  const Json json =
      Json::parse(
          R"( {"a": [1, -2.5e3, NaN], "b": {"c": "\u00fc\ud83d\ude00\n"}, "d": null, "e": true} )")
          .value();
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.names(), (std::vector<std::string>{"a", "b", "d", "e"}));
  EXPECT_EQ(json.find("a")->items()[0].count(), 1u);
  EXPECT_EQ(json.find("a")->items()[1].text(), "-2.5e3");
  EXPECT_EQ(json.find("a")->items()[1].count(), std::nullopt);
  EXPECT_EQ(json.find("b")->find("c")->text(), "\u00fc\U0001F600\n");
  EXPECT_TRUE(json.find("d")->is_null());
  EXPECT_EQ(json.find("e")->type(), Json::Type::kTrue);
  EXPECT_EQ(json.find("x"), nullptr);
  EXPECT_EQ(json.find("a")->find("x"), nullptr);
}

TEST(Json, a_count_is_a_whole_number_of_64_bits) {
  EXPECT_EQ(Json::parse("18446744073709551615").value().count(), ~uint64_t{0});
  for (const char* text : {"18446744073709551616", "-1", "1.0", "\"1\"", "NaN"})
    EXPECT_EQ(Json::parse(text).value().count(), std::nullopt) << text;
}

TEST(Json, what_is_no_json_is_refused_with_its_place) {
  for (const char* text : {"", "{", "[1,]", "[1 2]", "{\"a\" 1}", "{a: 1}", "\"x", "\"\\q\"",
                           "\"\\ud800\"", "1 2", "--1", "1.2.3", "truth", "[1}"}) {
    const auto got = Json::parse(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.status().code(), Code::kCorrupt) << text;
    EXPECT_GE(got.status().place().offset, 0) << text;
  }
}

TEST(Json, nesting_and_size_are_bounded) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(Json::parse(nested(Json::kDeepest)).ok());
  EXPECT_FALSE(Json::parse(nested(Json::kDeepest + 1)).ok());
  std::string many = "[1";
  for (size_t i = 0; i < Json::kMostValues; ++i) many += ",1";
  EXPECT_EQ(Json::parse(many + ']').status().code(), Code::kUnsupported);
}

TEST(Json, a_quoted_text_reads_back) {
  const std::string text = "a\"b\\c\n\x01 ü";
  EXPECT_EQ(Json::parse(json_quoted(text)).value().text(), text);
}

}  // namespace
}  // namespace headrace
