// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry/geometry.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "transform/kernels/resample.h"

namespace headrace {
namespace {

struct Picture {
  Size size;
  std::vector<uint8_t> pixels;  // RGB, with slack
};

Picture noise(Size size, uint64_t seed) {
  Rng rng{Key(seed)};
  Picture out{size, {}};
  for (int i = 0; i < size.width * size.height * 3; ++i)
    out.pixels.push_back(static_cast<uint8_t>(rng.next()));
  out.pixels.resize(out.pixels.size() + kRowSlack);
  return out;
}

Picture render(const Picture& source, const View& view) {
  const Size size = view.result();
  Picture out{size,
              std::vector<uint8_t>(static_cast<size_t>(size.width * size.height * 3) + kRowSlack)};
  Resampler resampler;
  const PixelOutput store{.layout = Layout::kNHWC};
  const Box region =
      resampler.begin(view, 1, 3, store, std::as_writable_bytes(std::span(out.pixels)));
  const size_t stride = static_cast<size_t>(source.size.width) * 3;
  resampler.rows({source.pixels.data() + static_cast<size_t>(region.y) * stride +
                      static_cast<size_t>(region.x) * 3,
                  stride, region.height});
  return out;
}

int between(Rng& rng, int low, int high) {
  return low + static_cast<int>(rng.below(static_cast<uint64_t>(high - low + 1)));
}

// A step as the library makes them: crop (perhaps padding), flips, resize, resized crop, padded
// crop.
View random_step(Size in, Rng& rng) {
  switch (rng.below(5)) {
    case 4: {
      View v = crop_view(in, {between(rng, -9, in.width), between(rng, -9, in.height),
                              between(rng, 1, in.width + 9), between(rng, 1, in.height + 9)});
      v.padding.border = static_cast<Border>(rng.below(4));
      v.padding.fill = {1, 2, static_cast<uint8_t>(3 + rng.below(2)), 4};
      return v;
    }
    case 0: {
      const int w = between(rng, 1, in.width + 6);
      const int h = between(rng, 1, in.height + 6);
      return crop_view(
          in, {w > in.width ? (in.width - w) / 2 : between(rng, 0, in.width - w),
               h > in.height ? (in.height - h) / 2 : between(rng, 0, in.height - h), w, h});
    }
    case 1: {
      View v = identity_view(in);
      v.flip = rng.below(2) == 0;
      v.flip_down = !v.flip || rng.below(2) == 0;
      return v;
    }
    case 2:
      return resize_view(in, {between(rng, 1, 40), between(rng, 1, 40)}, Filter::kBilinear);
    default: {
      View v = resize_view(in, {between(rng, 1, 40), between(rng, 1, 40)}, Filter::kBilinear);
      v.box.width = between(rng, 1, in.width);
      v.box.height = between(rng, 1, in.height);
      v.box.x = between(rng, 0, in.width - v.box.width);
      v.box.y = between(rng, 0, in.height - v.box.height);
      return v;
    }
  }
}

TEST(GeometryTest, FoldedStepsGiveThePixelsOfOneAfterTheOther) {
  Rng rng{Key(1)};
  int folded = 0;
  for (int i = 0; i < 4000; ++i) {
    const Picture source =
        noise({between(rng, 1, 30), between(rng, 1, 30)}, static_cast<uint64_t>(i));
    const View first = random_step(source.size, rng);
    const View second = random_step(first.result(), rng);
    const auto both = compose(first, second);
    if (!both) continue;
    ++folded;
    const Picture expected = render(render(source, first), second);
    const Picture got = render(source, *both);
    ASSERT_EQ(got.size, expected.size);
    for (size_t k = 0; k < expected.pixels.size() - kRowSlack; ++k)
      // Mirrored weights may round the other way: one level.
      ASSERT_NEAR(got.pixels[k], expected.pixels[k],
                  (first.flip || first.flip_down) && second.resamples() ? 1 : 0)
          << "case " << i;
  }
  EXPECT_GT(folded, 2000);
}

TEST(GeometryTest, ResamplingTwiceTakesTwoPasses) {
  const View half = resize_view({8, 8}, {4, 4}, Filter::kBilinear);
  EXPECT_FALSE(compose(half, resize_view({4, 4}, {3, 3}, Filter::kBilinear)));
}

TEST(GeometryTest, PaddingIsNotResampled) {
  const View padded = crop_view({4, 4}, {-2, -2, 8, 8});
  EXPECT_FALSE(compose(padded, resize_view({8, 8}, {4, 4}, Filter::kBilinear)));
}

TEST(GeometryTest, WhatAWindowCutStaysCut) {
  const View cut = crop_view({8, 8}, {2, 2, 4, 4});
  EXPECT_FALSE(compose(cut, crop_view({4, 4}, {-1, -1, 6, 6})));
  EXPECT_EQ(compose(cut, crop_view({4, 4}, {1, 1, 2, 2}))->window, (Box{3, 3, 2, 2}));
}

TEST(GeometryTest, ResizeThenCenterCropIsOneView) {
  const View resized = resize_view({500, 375}, {341, 256}, Filter::kBilinear);
  const auto v = compose(resized, crop_view({341, 256}, {58, 16, 224, 224}));
  ASSERT_TRUE(v);
  EXPECT_EQ(v->box, (Box{0, 0, 500, 375}));
  EXPECT_EQ(v->window, (Box{58, 16, 224, 224}));
}

TEST(GeometryTest, UnknownFiltersAreNamed) {
  EXPECT_EQ(filter_named("box").status().message(),
            "no filter 'box'; there are nearest, bilinear, bicubic, lanczos");
}

TEST(GeometryTest, BordersAreThoseOfTheirPictures) {
  const auto row = [](Border border) {
    std::string out;
    for (int i = -6; i < 9; ++i) out += "abcd"[within(i, 4, border)];
    return out;
  };
  EXPECT_EQ(row(Border::kEdge), "aaaaaaabcdddddd");
  EXPECT_EQ(row(Border::kReflect), "abcdcbabcdcbabc");
  EXPECT_EQ(row(Border::kSymmetric), "cddcbaabcddcbaa");
  for (const Border b : {Border::kEdge, Border::kReflect, Border::kSymmetric})
    for (int i = -3; i < 4; ++i) EXPECT_EQ(within(i, 1, b), 0);
}

TEST(GeometryTest, TwoWaysOfPaddingTakeTwoPasses) {
  View mirrored = crop_view({4, 4}, {-2, -2, 8, 8});
  mirrored.padding.border = Border::kReflect;
  const View black = crop_view({8, 8}, {-1, -1, 10, 10});
  EXPECT_FALSE(compose(mirrored, black));
  EXPECT_FALSE(compose(crop_view({4, 4}, {-2, -2, 8, 8}), [] {
    View white = crop_view({8, 8}, {-1, -1, 10, 10});
    white.padding.fill.fill(255);
    return white;
  }()));
  EXPECT_EQ(compose(mirrored, crop_view({8, 8}, {0, 0, 5, 5}))->padding, mirrored.padding);
}

}  // namespace
}  // namespace headrace
