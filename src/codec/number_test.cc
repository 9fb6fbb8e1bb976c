// SPDX-License-Identifier: Apache-2.0
#include "codec/number.h"

#include <gtest/gtest.h>

#include <array>

#include "codec/decoder_fixture.h"

namespace headrace {
namespace {

class OneElement final : public Slot {
 public:
  Result<MutableBytes> room(std::span<const int64_t> shape) override {
    EXPECT_TRUE(shape.empty());
    return MutableBytes(bytes);
  }
  std::array<std::byte, 8> bytes{};
};

template <typename T>
Result<T> decode(NumberForm form, DType dtype, Bytes value) {
  HEADRACE_ASSIGN(const auto decoder, make_number_decoder(form, dtype));
  EXPECT_EQ(decoder->output(), (TensorSpec{dtype, {}}));
  OneElement slot;
  HEADRACE_TRY(decode_one(*decoder, value, Key(0), slot));
  return load_le<T>(slot.bytes);
}

Result<int64_t> integer(std::string_view text) {
  return decode<int64_t>(NumberForm::kText, DType::kI64, as_bytes(text));
}
Result<double> real(std::string_view text) {
  return decode<double>(NumberForm::kText, DType::kF64, as_bytes(text));
}

TEST(NumberTest, ReadsDigitsWithSpaceAround) {
  EXPECT_EQ(integer("42").value(), 42);
  EXPECT_EQ(integer(" \t-7\r\n").value(), -7);
  EXPECT_EQ(integer("+3").value(), 3);
  EXPECT_EQ(integer("9223372036854775807").value(), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808").value(), INT64_MIN);
}

TEST(NumberTest, ReadsReals) {
  EXPECT_EQ(real("1.5e3\n").value(), 1500);
  EXPECT_EQ(real("-0.25").value(), -0.25);
  EXPECT_EQ(real("7").value(), 7);
}

TEST(NumberTest, RefusesWhatIsNoNumber) {
  for (const char* bad :
       {"", " ", "x", "1 2", "1.5", "--1", "+-1", "0x10", "1_000", "12,", "9223372036854775808"})
    EXPECT_EQ(integer(bad).status().code(), Code::kCorrupt) << bad;
  for (const char* bad : {"", "1..5", "1e", "nothing", "1e999"})
    EXPECT_EQ(real(bad).status().code(), Code::kCorrupt) << bad;
}

TEST(NumberTest, ErrorShowsTheTextAndWhereItWentWrong) {
  const Status s = integer("  12b").status();
  EXPECT_EQ(s.message(), "'12b' is not an integer");
  EXPECT_EQ(s.place().offset, 4);
}

TEST(NumberTest, BytesThatAreNoTextDoNotReachTheMessage) {
  EXPECT_EQ(integer("1\xff\x01").status().message(),
            "'1?"
            "?' is not an integer");
}

TEST(NumberTest, ReadsInlineNumbers) {
  std::array<std::byte, 8> raw{};
  store_le<int64_t>(raw, -5);
  EXPECT_EQ(decode<int64_t>(NumberForm::kInt64, DType::kI64, raw).value(), -5);
  EXPECT_EQ(decode<float>(NumberForm::kInt64, DType::kF32, raw).value(), -5.0f);
  store_le<double>(raw, 2.5);
  EXPECT_EQ(decode<double>(NumberForm::kFloat64, DType::kF64, raw).value(), 2.5);
  EXPECT_EQ(decode<int64_t>(NumberForm::kFloat64, DType::kI64, raw).status().code(),
            Code::kCorrupt);
  EXPECT_EQ(decode<int64_t>(NumberForm::kInt64, DType::kI64, Bytes(raw).first(4)).status().code(),
            Code::kCorrupt);
}

TEST(NumberTest, RefusesWhatTheTypeCannotHold) {
  EXPECT_EQ(decode<uint8_t>(NumberForm::kText, DType::kU8, as_bytes("255")).value(), 255);
  EXPECT_FALSE(decode<uint8_t>(NumberForm::kText, DType::kU8, as_bytes("256")).ok());
  EXPECT_FALSE(decode<uint8_t>(NumberForm::kText, DType::kU8, as_bytes("-1")).ok());
  std::array<std::byte, 8> raw{};
  store_le<int64_t>(raw, int64_t{1} << 40);
  EXPECT_FALSE(decode<int32_t>(NumberForm::kInt64, DType::kI32, raw).ok());
  store_le<double>(raw, 0x1.0p63);
  EXPECT_FALSE(decode<int64_t>(NumberForm::kFloat64, DType::kI64, raw).ok());
}

TEST(NumberTest, HalvesAreNotOffered) {
  EXPECT_EQ(make_number_decoder(NumberForm::kText, DType::kF16).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace headrace
