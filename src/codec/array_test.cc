// SPDX-License-Identifier: Apache-2.0
#include "codec/array.h"

#include <gtest/gtest.h>

#include <string>

#include "base/npy.h"
#include "codec/decoder_fixture.h"
#include "codec/elements.h"

namespace headrace {
namespace {

class AnySlot final : public Slot {
 public:
  explicit AnySlot(DType dtype) : item_(size_of(dtype)) {}
  Result<MutableBytes> room(std::span<const int64_t> extents) override {
    shape.assign(extents.begin(), extents.end());
    size_t bytes = item_;
    for (const int64_t n : extents) bytes *= static_cast<size_t>(n);
    memory.assign(bytes, std::byte{0});
    return MutableBytes(memory);
  }
  std::vector<int64_t> shape;
  std::vector<std::byte> memory;

 private:
  const size_t item_;
};

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

Result<AnySlot> decode(const ArrayPlan& plan, const std::string& value) {
  HEADRACE_ASSIGN(const auto decoder, make_array_decoder(plan));
  AnySlot slot(decoder->output().dtype);
  HEADRACE_TRY(decode_one(*decoder, as_bytes(value), Key(0), slot));
  return slot;
}

TEST(ArrayTest, LengthTellsTheExtentThatVaries) {
  const ArrayPlan plan{.stored = {false, DType::kU16, {kVaries, 3}}, .dtype = DType::kU16};
  const auto value = bytes_of<uint16_t>({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(decode(plan, value).value().shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(decode(plan, value + "xx").status().code(), Code::kCorrupt);
  EXPECT_EQ(decode(plan, value + "x").status().code(), Code::kCorrupt);
  EXPECT_EQ(decode(plan, "").value().shape, (std::vector<int64_t>{0, 3}));
}

TEST(ArrayTest, ShapeThatWasAskedForIsKnownBeforeDataMoves) {
  const ArrayPlan plan{.stored = {false, DType::kF32, {6}},
                       .shape = std::vector<int64_t>{2, kVaries},
                       .dtype = DType::kF32};
  EXPECT_EQ(make_array_decoder(plan).value()->output().text(), "f32[2,3]");
  ArrayPlan wrong = plan;
  wrong.shape = std::vector<int64_t>{kVaries, kVaries};
  EXPECT_EQ(make_array_decoder(wrong).status().code(), Code::kInvalidArgument);
}

TEST(ArrayTest, NpyOfAnotherShapeIsTheCallersMatter) {
  const std::string two = make_npy_header(DType::kU8, {2}) + "ab";
  const std::string three = make_npy_header(DType::kU8, {3}) + "abc";
  ArrayPlan plan{.stored = {true, DType::kU8, {2}}, .dtype = DType::kU8};
  EXPECT_TRUE(decode(plan, two).ok());
  const Status other = decode(plan, three).status();
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_NE(other.text().find(".list(), .padded() or .ragged()"), std::string::npos);
  plan.one_shape = false;
  EXPECT_EQ(decode(plan, three).value().shape, std::vector<int64_t>{3});
  EXPECT_EQ(decode(plan, three.substr(0, three.size() - 1)).status().code(), Code::kCorrupt);
}

TEST(ArrayTest, IntegersHoldExactlyOrNotAtAll) {
  std::byte out[16];
  const auto to = [&](const std::string& from, DType a, DType b) {
    const size_t count = from.size() / size_of(a);
    return convert_elements(as_bytes(from), a, MutableBytes(out).first(count * size_of(b)), b);
  };
  EXPECT_TRUE(to(bytes_of<int64_t>({255}), DType::kI64, DType::kU8).ok());
  EXPECT_EQ(to(bytes_of<int64_t>({0, 256}), DType::kI64, DType::kU8).place().offset, 8);
  EXPECT_FALSE(to(bytes_of<int8_t>({-1}), DType::kI8, DType::kU64).ok());
  EXPECT_FALSE(to(bytes_of<uint64_t>({~uint64_t{0}}), DType::kU64, DType::kI64).ok());
  EXPECT_FALSE(to(bytes_of<double>({0.5}), DType::kF64, DType::kI32).ok());
  EXPECT_FALSE(to(bytes_of<float>({0x1.0p31f}), DType::kF32, DType::kI32).ok());
  EXPECT_TRUE(to(bytes_of<float>({-0x1.0p31f}), DType::kF32, DType::kI32).ok());
  EXPECT_FALSE(to(bytes_of<float>({__builtin_nanf("")}), DType::kF32, DType::kI32).ok());
}

}  // namespace
}  // namespace headrace
