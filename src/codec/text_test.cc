// SPDX-License-Identifier: Apache-2.0
#include "codec/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/utf8.h"
#include "codec/decoder_fixture.h"

namespace headrace {
namespace {

class Any final : public Slot {
 public:
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    bytes.resize(static_cast<size_t>(shape[0]));
    return MutableBytes(bytes);
  }
  std::vector<std::byte> bytes;
};

TEST(TextTest, TakesUtf8AsItIs) {
  for (const std::string text :
       {"", "plain", "naïve façade", "日本語のテキスト", "😀 and ascii behind it", "\x7f"}) {
    Any slot;
    ASSERT_TRUE(decode_one(*make_text_decoder(), as_bytes(text), Key(0), slot).ok()) << text;
    EXPECT_EQ(as_text(slot.bytes), text);
  }
}

TEST(TextTest, PointsAtTheFirstBadByte) {
  const std::vector<std::pair<std::string, size_t>> bad{
      {"abc\xff", 3},       {"\x80", 0},         {"ok\xc3", 2},           {"\xc0\xaf", 0},
      {"\xe0\x80\x80", 0},  {"\xed\xa0\x80", 0}, {"\xf4\x90\x80\x80", 0}, {"12345678\xe2\x82", 8},
      {"\xf0\x9f\x98x", 0},
  };
  for (const auto& [text, at] : bad) {
    Any slot;
    const Status s = decode_one(*make_text_decoder(), as_bytes(text), Key(0), slot);
    EXPECT_EQ(s.code(), Code::kCorrupt);
    EXPECT_EQ(s.place().offset, static_cast<int64_t>(at));
  }
}

TEST(TextTest, EveryCodePointIsValidAndNoSurrogateIs) {
  for (uint32_t c = 0; c < 0x110000; c += 37) {
    std::string s;
    if (c < 0x80) {
      s = {static_cast<char>(c)};
    } else if (c < 0x800) {
      s = {static_cast<char>(0xc0 | (c >> 6)), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      s = {static_cast<char>(0xe0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 63)),
           static_cast<char>(0x80 | (c & 63))};
    } else {
      s = {static_cast<char>(0xf0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 63)),
           static_cast<char>(0x80 | ((c >> 6) & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    const bool surrogate = c >= 0xd800 && c < 0xe000;
    EXPECT_EQ(valid_utf8_prefix(as_bytes(s)) == s.size(), !surrogate) << c;
  }
}

TEST(BytesTest, TakesAnything) {
  Any slot;
  const std::string raw("\0\xff\x80", 3);
  ASSERT_TRUE(decode_one(*make_bytes_decoder(), as_bytes(raw), Key(0), slot).ok());
  EXPECT_EQ(as_text(slot.bytes), raw);
  EXPECT_EQ(make_bytes_decoder()->output(), (TensorSpec{DType::kU8, {kVaries}}));
}

}  // namespace
}  // namespace headrace
