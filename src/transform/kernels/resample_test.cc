// SPDX-License-Identifier: Apache-2.0
//
// Against pictures that Pillow made (tests/make_pixel_goldens.py); tests/test_pixels.py compares
// many more with the Pillow that is installed.
#include "transform/kernels/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "transform/kernels/resample_golden.h"

namespace headrace {
namespace {

constexpr Size kSize{golden::kSourceSize[0], golden::kSourceSize[1]};

std::vector<uint8_t> source() {
  std::vector<uint8_t> out(std::begin(golden::kSource), std::end(golden::kSource));
  out.resize(out.size() + kRowSlack);
  return out;
}

View view_of(const golden::Resampled& g) {
  View v = resize_view(kSize, {g.size[0], g.size[1]}, filter_named(g.filter).value());
  v.box = {g.box[0], g.box[1], g.box[2], g.box[3]};
  return v;
}

// Gives the rows in pieces of `step`, as a decoder would.
std::vector<uint8_t> render(Resampler& resampler, const View& view, const PixelOutput& store,
                            int step) {
  const std::vector<uint8_t> pixels = source();
  std::vector<uint8_t> out(static_cast<size_t>(view.window.width * view.window.height * 3) *
                           size_of(store.dtype));
  const Box region = resampler.begin(view, 1, 3, store, std::as_writable_bytes(std::span(out)));
  for (int y = 0; y < region.height; y += step)
    resampler.rows(
        {pixels.data() + static_cast<size_t>(((region.y + y) * kSize.width + region.x) * 3),
         static_cast<size_t>(kSize.width) * 3, std::min(step, region.height - y)});
  return out;
}

std::vector<uint8_t> expected(const golden::Resampled& g) {
  return {g.pixels, g.pixels + static_cast<ptrdiff_t>(g.size[0]) * g.size[1] * 3};
}

TEST(ResampleTest, EqualsPillowToTheLastBit) {
  Resampler resampler;
  for (const auto& g : golden::kResampled)
    for (const int step : {1, 3, 16, 1000})
      EXPECT_EQ(render(resampler, view_of(g), {.layout = Layout::kNHWC}, step), expected(g))
          << g.filter << " to " << g.size[0] << " x " << g.size[1] << " in steps of " << step;
}

TEST(ResampleTest, FlipMirrorsTheResult) {
  Resampler resampler;
  for (const auto& g : golden::kResampled) {
    View v = view_of(g);
    v.flip = true;
    const auto got = render(resampler, v, {.layout = Layout::kNHWC}, 16);
    auto mirrored = expected(g);
    const int w = g.size[0];
    for (int i = 0; i < w * g.size[1]; ++i)
      for (int c = 0; c < 3; ++c)
        mirrored[static_cast<size_t>(i * 3 + c)] = g.pixels[(i / w * w + w - 1 - i % w) * 3 + c];
    EXPECT_EQ(got, mirrored);
  }
}

TEST(ResampleTest, WindowIsThatPartOfTheResult) {
  Resampler resampler;
  for (const auto& g : golden::kResampled) {
    View v = view_of(g);
    v.window = {g.size[0] / 3, g.size[1] / 4, (g.size[0] + 1) / 2, (g.size[1] + 1) / 2};
    const auto got = render(resampler, v, {.layout = Layout::kNHWC}, 16);
    std::vector<uint8_t> part;
    for (int y = v.window.y; y < v.window.y + v.window.height; ++y) {
      const uint8_t* row = g.pixels + (y * g.size[0] + v.window.x) * 3;
      part.insert(part.end(), row, row + v.window.width * 3);
    }
    EXPECT_EQ(got, part);
  }
}

TEST(ResampleTest, AsksForNoMoreRowsAndColumnsThanItUses) {
  View v = resize_view({1000, 800}, {100, 80}, Filter::kBilinear);
  v.window = {40, 40, 10, 10};
  std::vector<std::byte> out(300);
  const Box region = Resampler().begin(v, 1, 3, {}, out);
  EXPECT_EQ(region, (Box{395, 395, 110, 110}));
}

TEST(ResampleTest, PlanesAndTypesHoldTheSamePixels) {
  Resampler resampler;
  const auto& g = golden::kResampled[1];
  const int n = g.size[0] * g.size[1];
  PixelOutput store;
  const auto planes = render(resampler, view_of(g), store, 16);
  store.dtype = DType::kF32;
  const auto raw = render(resampler, view_of(g), store, 16);
  std::vector<float> floats(raw.size() / 4);
  std::memcpy(floats.data(), raw.data(), raw.size());
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < 3; ++c) {
      EXPECT_EQ(planes[static_cast<size_t>(c * n + i)], g.pixels[i * 3 + c]);
      EXPECT_EQ(floats[static_cast<size_t>(c * n + i)], g.pixels[i * 3 + c]);
    }
}

TEST(ResampleTest, PaddingIsZeroBeforeItIsNormalized) {
  PixelOutput store{.dtype = DType::kF32};
  store.scale = {2, 2, 2, 2};
  store.bias = {-1, -2, -3, 0};
  View v = identity_view(kSize);
  v.window = {-2, -1, kSize.width + 4, kSize.height + 2};
  Resampler resampler;
  const auto raw = render(resampler, v, store, 16);
  std::vector<float> floats(raw.size() / 4);
  std::memcpy(floats.data(), raw.data(), raw.size());
  const size_t plane = floats.size() / 3;
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(floats[c * plane], store.bias[c]);
    EXPECT_EQ(floats[c * plane + static_cast<size_t>(v.window.width) + 1], store.bias[c]);
    EXPECT_EQ(floats[(c + 1) * plane - 1], store.bias[c]);
    EXPECT_EQ(floats[c * plane + static_cast<size_t>(v.window.width) + 2],
              2.0f * golden::kSource[c] + store.bias[c]);
  }
}

// Scaled decoding gives boxes that begin between pixels.
TEST(ResampleTest, ShrunkSourcesAreSampledAtTheirPlaces) {
  View v = resize_view({80, 60}, {4, 4}, Filter::kBilinear);
  v.box = {13, 7, 41, 33};
  std::vector<std::byte> out(48);
  Resampler resampler;
  const Box region = resampler.begin(v, 2, 3, {}, out);
  EXPECT_EQ(region, (Box{6, 3, 21, 17}));
  const std::vector<uint8_t> flat(static_cast<size_t>(21 * 17 * 3) + kRowSlack, 77);
  resampler.rows({flat.data(), 21 * 3, 17});
  for (const std::byte b : out) EXPECT_EQ(b, std::byte{77});
}

}  // namespace
}  // namespace headrace
