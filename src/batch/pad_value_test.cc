// SPDX-License-Identifier: Apache-2.0
#include "batch/pad_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "batch/column.h"

namespace headrace {
namespace {

template <typename T>
T element(PadNumber number, DType dtype) {
  const auto made = pad_value(number, dtype);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? load_le<T>(made.value().element) : T{};
}
bool is_refused(PadNumber number, DType dtype) {
  return pad_value(number, dtype).status().code() == Code::kInvalidArgument;
}

TEST(pad_value, is_an_element_of_the_columns_type) {
  EXPECT_EQ(element<int64_t>(int64_t{-100}, DType::kI64), -100);
  EXPECT_EQ(element<uint8_t>(int64_t{255}, DType::kU8), 255);
  EXPECT_EQ(element<int16_t>(-3.0, DType::kI16), -3);
  EXPECT_EQ(element<uint64_t>(~uint64_t{0}, DType::kU64), ~uint64_t{0});
  EXPECT_EQ(element<float>(0.1, DType::kF32), 0.1f);
  EXPECT_EQ(element<double>(int64_t{7}, DType::kF64), 7.0);
  EXPECT_EQ(from_f16(element<uint16_t>(-1.5, DType::kF16)), -1.5f);
  EXPECT_EQ(from_bf16(element<uint16_t>(int64_t{-100}, DType::kBF16)), -100.0f);
  EXPECT_TRUE(std::isnan(element<float>(std::nan(""), DType::kF32)));
  EXPECT_TRUE(std::isnan(from_f16(element<uint16_t>(std::nan(""), DType::kF16))));
  EXPECT_TRUE(std::isnan(from_bf16(element<uint16_t>(std::nan(""), DType::kBF16))));
  EXPECT_EQ(element<double>(-HUGE_VAL, DType::kF64), -HUGE_VAL);
}

TEST(pad_value, what_the_type_cannot_hold_is_refused) {
  EXPECT_TRUE(is_refused(int64_t{-1}, DType::kU8));
  EXPECT_TRUE(is_refused(int64_t{256}, DType::kU8));
  EXPECT_TRUE(is_refused(0.5, DType::kI64));
  EXPECT_TRUE(is_refused(std::nan(""), DType::kI32));
  EXPECT_TRUE(is_refused(0x1p63, DType::kI64));
  EXPECT_TRUE(is_refused(0x1p64, DType::kU64));
  EXPECT_TRUE(is_refused(~uint64_t{0}, DType::kI64));
  EXPECT_TRUE(is_refused(1e300, DType::kF32));
  EXPECT_TRUE(is_refused(int64_t{70000}, DType::kF16));
  EXPECT_TRUE(is_refused(int64_t{16777217}, DType::kF32));
  EXPECT_TRUE(is_refused(std::numeric_limits<int64_t>::max(), DType::kF64));
  EXPECT_TRUE(is_refused(~uint64_t{0}, DType::kF64));
  EXPECT_EQ(pad_value(int64_t{-1}, DType::kU8).status().message(),
            "the padding is -1 and the values are u8, which holds 0 to 255");
}

TEST(pad_value, a_padded_column_holds_it_beyond_each_value) {
  const auto pool = BufferPool::make(0);
  for (const int32_t pad : {0, -1, -100}) {
    const ColumnSpec spec{.name = "x",
                          .value = {DType::kI32, {kVaries, kVaries}},
                          .packing = Packing::kPadded,
                          .pad = pad_value(int64_t{pad}, DType::kI32).value()};
    ColumnBuilder builder(spec, 3, *pool);
    const std::vector<int64_t> wide{1, 3};
    const std::vector<int64_t> tall{2, 1};
    const MutableBytes room = builder.room(1, tall).value();
    store_le(room, int32_t{8});
    store_le(room.subspan(4), int32_t{9});  // and sample 2 has none
    const MutableBytes first = builder.room(0, wide).value();
    for (size_t i = 0; i < 3; ++i) store_le(first.subspan(4 * i), static_cast<int32_t>(i + 1));
    const Column column = builder.finish();
    EXPECT_EQ(column.shape, (std::vector<int64_t>{3, 2, 3}));
    std::vector<int32_t> got(18);
    std::memcpy(got.data(), column.values->data(), column.values->size());
    EXPECT_EQ(got, (std::vector<int32_t>{1, 2, 3, pad, pad, pad, 8, pad, pad, 9, pad, pad,  //
                                         pad, pad, pad, pad, pad, pad}));
  }
}

}  // namespace
}  // namespace headrace
