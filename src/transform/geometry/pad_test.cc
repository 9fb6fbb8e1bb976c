// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(PadTest, AddsToTheSides) {
  EXPECT_EQ(step<Geometric>("pad", {{"padding", int64_t{3}}})->infer({10, 20}), (Size{16, 26}));
  EXPECT_EQ(step<Geometric>("pad", {{"padding", Numbers{1, 2}}})->infer({10, -1}), (Size{12, -1}));
  const auto four = step<Geometric>("pad", {{"padding", Numbers{1, 2, 3, 4}}, {"fill", 9.0}});
  const View v = four->view({10, 20}, Rng(Key(0)));
  EXPECT_EQ(v.window, (Box{-1, -2, 14, 26}));
  EXPECT_EQ(v.padding.fill[2], 9);
}

TEST(PadTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("pad", {}), "parameter 'padding' is missing");
  EXPECT_EQ(refusal("pad", {{"padding", int64_t{-1}}}),
            "parameter 'padding' must be from 0 to 65536");
  EXPECT_EQ(refusal("pad", {{"padding", Numbers{1, 2, 3}}}),
            "parameter 'padding' must be one number, (left and right, top and bottom) or (left, "
            "top, right, bottom)");
  EXPECT_EQ(refusal("pad", {{"padding", int64_t{1}}, {"padding_mode", std::string("wrap")}}),
            "no padding_mode 'wrap'; there are constant, edge, reflect, symmetric");
  EXPECT_EQ(refusal("pad", {{"padding", int64_t{1}}, {"fill", 256.0}}),
            "parameter 'fill' must be a level from 0 to 255, or one for each channel");
  const auto red = step<Geometric>("pad", {{"padding", int64_t{1}}, {"fill", Numbers{255, 0, 0}}});
  EXPECT_TRUE(red->check_channels(3).ok());
  EXPECT_EQ(red->check_channels(1).message(), "parameter 'fill' has 3 numbers for 1 channel");
}

}  // namespace
}  // namespace headrace::fixture
