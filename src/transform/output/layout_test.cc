// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transform/transform.h"

namespace headrace {
extern const TransformEntry layout_transform;
namespace {

TEST(LayoutTest, OrdersTheAxes) {
  for (const char* name : {"NCHW", "NHWC"}) {
    const Transform t = layout_transform.make(Params({{"order", std::string(name)}})).value();
    PixelOutput store;
    ASSERT_TRUE(std::get<StoreStep>(t)(store, 3).ok());
    const std::vector<int64_t> expected =
        name == std::string("NCHW") ? std::vector<int64_t>{3, 4, 5} : std::vector<int64_t>{4, 5, 3};
    EXPECT_EQ(store.shape({5, 4}, 3), expected);
  }
}

TEST(LayoutTest, RefusesOthers) {
  EXPECT_EQ(layout_transform.make(Params({{"order", std::string("CHW")}})).status().message(),
            "no layout 'CHW'; there are NCHW, NHWC");
}

}  // namespace
}  // namespace headrace
