// SPDX-License-Identifier: Apache-2.0
#include "codec/widen.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/rng.h"

namespace headrace {
namespace {

template <typename From, typename To>
void check(DType from_type, DType to_type) {
  for (size_t count = 0; count < 150; ++count) {
    for (size_t shift = 0; shift < 3; ++shift) {  // no alignment is assumed
      Rng rng(Key(count).with(shift));
      std::vector<std::byte> from(count * sizeof(From) + shift), to(count * sizeof(To) + shift + 8);
      std::vector<From> values;
      for (size_t i = 0; i < count; ++i) {
        const auto v = i == 0   ? std::numeric_limits<From>::max()
                       : i == 1 ? std::numeric_limits<From>::min()
                                : static_cast<From>(rng.next());
        values.push_back(v);
        store_le(MutableBytes(from).subspan(shift + i * sizeof(From)), v);
      }
      ASSERT_TRUE(widen(Bytes(from).subspan(shift), from_type,
                        MutableBytes(to).subspan(shift, count * sizeof(To)), to_type,
                        shift == 1 ? from.data() : nullptr));
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(load_le<To>(Bytes(to).subspan(shift + i * sizeof(To))),
                  static_cast<To>(values[i]));
      for (size_t i = shift + count * sizeof(To); i < to.size(); ++i)
        ASSERT_EQ(to[i], std::byte{0}) << "written past the end";
    }
  }
}

TEST(Widen, every_number_keeps_its_value) {
  check<uint16_t, int64_t>(DType::kU16, DType::kI64);
  check<int32_t, int64_t>(DType::kI32, DType::kI64);
  check<uint32_t, int64_t>(DType::kU32, DType::kI64);
  check<uint8_t, int64_t>(DType::kU8, DType::kI64);
  check<uint16_t, int32_t>(DType::kU16, DType::kI32);
  check<uint8_t, int32_t>(DType::kU8, DType::kI32);
}

TEST(Widen, a_copied_row_is_the_row_and_nothing_beside_it) {
  for (size_t count = 0; count < 300; ++count)
    for (size_t shift = 0; shift < 3; ++shift) {
      Rng rng(Key(count).with(shift));
      std::vector<std::byte> from(count + shift), to(count + shift + 8);
      for (std::byte& b : from) b = static_cast<std::byte>(rng.next() | 1);
      copy_row(Bytes(from).subspan(shift), MutableBytes(to).subspan(shift, count));
      for (size_t i = 0; i < to.size(); ++i)
        ASSERT_EQ(to[i], i >= shift && i < shift + count ? from[i] : std::byte{0});
    }
}

TEST(Widen, other_types_are_left_to_others) {
  std::vector<std::byte> from(8), to(32);
  EXPECT_FALSE(widen(from, DType::kI64, MutableBytes(to).first(2), DType::kU16));
  EXPECT_FALSE(widen(from, DType::kF32, MutableBytes(to).first(16), DType::kF64));
}

}  // namespace
}  // namespace headrace
