// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry cast_transform;
namespace {

Status cast_to(const std::string& dtype, PixelOutput& store) {
  HEADRACE_ASSIGN(const Transform t, cast_transform.make(Params({{"dtype", dtype}})));
  return std::get<StoreStep>(t)(store, 3);
}

TEST(CastTest, ChoosesTheTypeAndScalesNothing) {
  for (const DType d : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    PixelOutput store;
    ASSERT_TRUE(cast_to(std::string(dtype_name(d)), store).ok());
    EXPECT_EQ(store.dtype, d);
    EXPECT_EQ(store.scale[0], 1.0f);
    EXPECT_EQ(store.bias[0], 0.0f);
  }
}

TEST(CastTest, RefusesOtherTypes) {
  PixelOutput store;
  EXPECT_EQ(cast_to("i64", store).message(),
            "a picture cannot be 'i64'; there are u8, f16, bf16, f32");
  store.normalized = true;
  EXPECT_EQ(cast_to("u8", store).message(),
            "a normalized picture cannot be u8; there are f16, bf16, f32");
}

}  // namespace
}  // namespace headrace
