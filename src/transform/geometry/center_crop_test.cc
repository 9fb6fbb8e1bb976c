// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry center_crop_transform;
namespace {

Box window(Size in, Param size) {
  const auto t = center_crop_transform.make(Params({{"size", std::move(size)}})).value();
  const View v = std::get<std::unique_ptr<const Geometric>>(t)->view(in, Rng(Key(0)));
  EXPECT_EQ(v.size, in);
  return v.window;
}

// As torchvision: int(round((341 - 224) / 2.0)) == 58, and halves go to the even number.
TEST(CenterCropTest, RoundsHalvesToEven) {
  EXPECT_EQ(window({341, 256}, int64_t{224}), (Box{58, 16, 224, 224}));
  EXPECT_EQ(window({227, 225}, int64_t{224}), (Box{2, 0, 224, 224}));
  EXPECT_EQ(window({229, 224}, int64_t{224}), (Box{2, 0, 224, 224}));
}

TEST(CenterCropTest, PadsWhatIsTooSmallTheOddPixelRightAndBelow) {
  EXPECT_EQ(window({10, 20}, int64_t{15}), (Box{-2, 2, 15, 15}));
  EXPECT_EQ(window({4, 4}, std::vector<double>{9, 4}), (Box{0, -2, 4, 9}));
}

TEST(CenterCropTest, NeedsASize) {
  EXPECT_EQ(center_crop_transform.make(Params()).status().message(), "parameter 'size' is missing");
}

}  // namespace
}  // namespace headrace
