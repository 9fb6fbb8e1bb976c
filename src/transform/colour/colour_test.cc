// SPDX-License-Identifier: Apache-2.0
//
// What vectors make of many pixels is what they make of each; tests/test_transforms.py compares
// with torchvision.
#include "transform/colour/colour.h"

#include <gtest/gtest.h>

#include "transform/colour/gray.h"
#include "transform/step_fixture.h"

namespace headrace::fixture {
namespace {

using Change = void (*)(const Pixels&);

constexpr Change kChanges[] = {
    [](const Pixels& p) { adjust_hue(p, 0.37); },
    [](const Pixels& p) { adjust_hue(p, -0.5); },
    [](const Pixels& p) { adjust_saturation(p, 1.7); },
    [](const Pixels& p) { adjust_saturation(p, 0.1); },
    [](const Pixels& p) { adjust_brightness(p, 1.3); },
    make_gray,
};

TEST(ColourTest, APixelDoesNotDependOnItsNeighbours) {
  for (const Change change : kChanges)
    for (const int channels : {3, 4})
      for (int width = 1; width < 40; ++width) {
        Canvas row({width, 1}, channels, static_cast<uint64_t>(width));
        Canvas alone = row;
        change(row.pixels());
        for (int x = 0; x < width; ++x)
          change({alone.bytes.data() + x * channels, {1, 1}, channels});
        ASSERT_EQ(row.bytes, alone.bytes) << width;
      }
}

TEST(ColourTest, SaturationIsTheBlendWithGray) {
  for (const double factor : {0.0, 0.33, 1.0, 1.9, 7.0}) {
    Canvas picture({97, 61}, 3);
    const Canvas before = picture;
    adjust_saturation(picture.pixels(), factor);
    const double rest = static_cast<float>(1 - factor);
    for (size_t i = 0; i < before.bytes.size(); ++i) {
      const double other = gray_of(&before.bytes[i / 3 * 3]) * rest;
      ASSERT_EQ(picture.bytes[i], blended(before.bytes[i], static_cast<float>(factor), other));
    }
  }
}

// All of them against the exact sum.
TEST(ColourTest, GrayIsRoundedDown) {
  for (int r = 0; r < 256; ++r)
    for (int g = 0; g < 256; ++g)
      for (int b = 0; b < 256; ++b) {
        const uint8_t p[] = {static_cast<uint8_t>(r), static_cast<uint8_t>(g),
                             static_cast<uint8_t>(b)};
        ASSERT_EQ(gray_of(p), static_cast<uint32_t>((2989 * r + 5870 * g + 1140 * b) / 10000));
      }
}

TEST(ColourTest, NoTurnOfTheHueChangesNothing) {
  Canvas picture({97, 61}, 3);
  const Canvas before = picture;
  adjust_hue(picture.pixels(), 0);
  EXPECT_EQ(picture.bytes, before.bytes);
}

}  // namespace
}  // namespace headrace::fixture
