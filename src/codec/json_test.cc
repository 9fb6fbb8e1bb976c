// SPDX-License-Identifier: Apache-2.0
#include "codec/json.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

TEST(JsonTest, TakesWhatIsJson) {
  for (const char* text :
       {"0", " -1.5e+3 ", "\"a\\u00e9\\n\"", "[]", "{}", "[1, [2, {\"a\": null}], true]",
        "{\"a\": {\"b\": [false, NaN, -Infinity]}, \"c\": \"\"}", "[[[[]]]]"})
    EXPECT_TRUE(check_json(as_bytes(text)).ok())
        << text << ": " << check_json(as_bytes(text)).text();
}

TEST(JsonTest, RefusesWhatIsNotAtTheFirstWrongByte) {
  struct Case {
    const char* text;
    int64_t offset;
  };
  for (const Case& c : {Case{"", 0}, Case{"{\"a\": ", 6}, Case{"[1,]", 3}, Case{"{\"a\" 1}", 5},
                        Case{"01", 1}, Case{"1.", 2}, Case{"\"abc", 4}, Case{"\"\\x\"", 1},
                        Case{"[1 2]", 3}, Case{"{1: 2}", 1}, Case{"nul", 0}, Case{"[}", 1},
                        Case{"{} {}", 3}, Case{"\"\\u12g4\"", 1}, Case{"-", 1}, Case{"]", 0}}) {
    const Status s = check_json(as_bytes(c.text));
    EXPECT_EQ(s.code(), Code::kCorrupt) << c.text;
    EXPECT_EQ(s.place().offset, c.offset) << c.text << ": " << s.text();
  }
}

TEST(JsonTest, DepthIsBounded) {
  EXPECT_TRUE(check_json(as_bytes(std::string(512, '[') + std::string(512, ']'))).ok());
  EXPECT_FALSE(check_json(as_bytes(std::string(100000, '['))).ok());
}

}  // namespace
}  // namespace headrace
