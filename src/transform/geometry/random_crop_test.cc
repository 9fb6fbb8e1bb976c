// SPDX-License-Identifier: Apache-2.0
//
// Pixels against torchvision's: tests/test_transforms.py; draws: tests/test_transforms_draws.py.
#include <utility>

#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

TEST(RandomCropTest, TakesEveryPlaceAsOften) {
  const auto crop =
      step<Geometric>("random_crop", {{"size", Numbers{3, 2}}, {"padding", int64_t{1}}});
  std::map<std::pair<int, int>, int> seen;
  for (uint64_t i = 0; i < 12000; ++i) {
    const View v = crop->view({3, 2}, Rng(Key(i)));
    EXPECT_EQ(v.result(), (Size{2, 3}));
    ++seen[{v.window.x, v.window.y}];
  }
  EXPECT_EQ(seen.size(), 8u);  // x from -1 to 2, y from -1 to 0
  for (const auto& [place, n] : seen) EXPECT_NEAR(n, 1500, 200);
  EXPECT_EQ(seen.begin()->first, (std::pair{-1, -1}));
}

TEST(RandomCropTest, RefusesPicturesThatAreTooSmallUnlessTold) {
  const auto crop =
      step<Geometric>("random_crop", {{"size", int64_t{32}}, {"padding", int64_t{1}}});
  EXPECT_TRUE(crop->check_size({30, 30}).ok());
  EXPECT_EQ(crop->check_size({30, 20}).message(),
            "the picture is 32 x 22 with its padding, smaller than the crop of 32 x 32; "
            "pad_if_needed=True pads it");
  const auto any = step<Geometric>("random_crop", {{"size", int64_t{32}}, {"pad_if_needed", true}});
  EXPECT_TRUE(any->check_size({1, 1}).ok());
  for (uint64_t i = 0; i < 100; ++i) {
    const Box window = any->view({1, 40}, Rng(Key(i))).window;
    EXPECT_LE(window.x, 0);
    EXPECT_GE(window.x, -31);
    EXPECT_TRUE(window.y >= 0 && window.y <= 8);
  }
}

TEST(RandomCropTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal("random_crop", {{"size", int64_t{0}}}),
            "parameter 'size' must be from 1 to 65536");
  EXPECT_EQ(refusal("random_crop", {{"size", int64_t{8}}, {"padding", 1.5}}),
            "parameter 'padding' must be a whole number or a list of them");
  EXPECT_EQ(refusal("random_crop", {{"size", int64_t{8}}, {"pad", int64_t{1}}}),
            "unknown parameter 'pad'; it takes size, padding, pad_if_needed, fill, padding_mode");
}

}  // namespace
}  // namespace headrace::fixture
