// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry normalize_transform;
extern const TransformEntry cast_transform;
namespace {

using Numbers = std::vector<double>;

Status apply(const TransformEntry& entry, std::map<std::string, Param> params, PixelOutput& store,
             int channels = 3) {
  HEADRACE_ASSIGN(const Transform t, entry.make(Params(std::move(params))));
  return std::get<StoreStep>(t)(store, channels);
}

const Numbers kMean{0.485, 0.456, 0.406};
const Numbers kStd{0.229, 0.224, 0.225};

TEST(NormalizeTest, IsValueOver255MinusMeanByStd) {
  PixelOutput store;
  ASSERT_TRUE(apply(normalize_transform, {{"mean", kMean}, {"std", kStd}}, store).ok());
  EXPECT_EQ(store.dtype, DType::kF32);
  for (size_t c = 0; c < 3; ++c)
    for (const double v : {0.0, 100.0, 255.0})
      EXPECT_NEAR(v * store.scale[c] + store.bias[c], (v / 255 - kMean[c]) / kStd[c], 1e-6);
}

TEST(NormalizeTest, OneNumberServesAllChannels) {
  PixelOutput store;
  ASSERT_TRUE(apply(normalize_transform, {{"mean", 0.5}, {"std", 0.5}}, store).ok());
  EXPECT_EQ(store.scale[2], store.scale[0]);
}

TEST(NormalizeTest, KeepsTheTypeThatWasAskedFor) {
  PixelOutput store;
  ASSERT_TRUE(apply(cast_transform, {{"dtype", std::string("f16")}}, store).ok());
  ASSERT_TRUE(apply(normalize_transform, {{"mean", kMean}, {"std", kStd}}, store).ok());
  EXPECT_EQ(store.dtype, DType::kF16);
}

TEST(NormalizeTest, RefusesWhatDoesNotFit) {
  PixelOutput store;
  EXPECT_EQ(apply(normalize_transform, {{"mean", Numbers{0, 0}}, {"std", kStd}}, store).message(),
            "parameter 'mean' has 2 numbers for 3 channels");
  EXPECT_EQ(apply(normalize_transform, {{"mean", kMean}, {"std", kStd}}, store, 1).message(),
            "parameter 'mean' has 3 numbers for 1 channel");
  EXPECT_EQ(
      apply(normalize_transform, {{"mean", kMean}, {"std", Numbers{1, 0, 1}}}, store).message(),
      "parameter 'std' must be above 0");
  EXPECT_EQ(apply(normalize_transform, {{"mean", kMean}}, store).message(),
            "parameter 'std' is missing");
  ASSERT_TRUE(apply(normalize_transform, {{"mean", kMean}, {"std", kStd}}, store).ok());
  EXPECT_EQ(apply(normalize_transform, {{"mean", kMean}, {"std", kStd}}, store).message(),
            "the picture is normalized already");
}

TEST(NormalizeTest, RefusesBytes) {
  PixelOutput store;
  ASSERT_TRUE(apply(cast_transform, {{"dtype", std::string("u8")}}, store).ok());
  EXPECT_EQ(apply(normalize_transform, {{"mean", kMean}, {"std", kStd}}, store).message(),
            "a u8 cannot be normalized: cast to f16, bf16 or f32");
}

}  // namespace
}  // namespace headrace
