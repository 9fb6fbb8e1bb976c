// SPDX-License-Identifier: Apache-2.0
//
// The vectors give the bytes of the plain kernels, for every width, filter, type and layout.
#include "transform/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "transform/kernels/resample.h"

namespace headrace {
namespace {

struct Case {
  Size source;
  View view;
  int channels;
  PixelOutput store;
};

std::vector<uint8_t> noise(const Case& c, uint64_t seed) {
  Rng rng{Key(seed)};
  std::vector<uint8_t> out(static_cast<size_t>(c.source.width * c.source.height * c.channels) +
                           kRowSlack);
  for (uint8_t& v : out)
    v = rng.below(4) == 0 ? static_cast<uint8_t>(255 * rng.below(2))
                          : static_cast<uint8_t>(rng.next());
  return out;
}

std::vector<std::byte> render(const Case& c, const std::vector<uint8_t>& pixels,
                              const Kernels& kernels) {
  Resampler resampler(kernels);
  const size_t n = static_cast<size_t>(c.view.window.width * c.view.window.height * c.channels) *
                   size_of(c.store.dtype);
  std::vector<std::byte> out(n + 1, std::byte{0xa5});  // the last byte guards
  const Box region = resampler.begin(c.view, 1, c.channels, c.store, std::span(out).first(n));
  const auto pixel = static_cast<size_t>(c.channels);
  const size_t stride = static_cast<size_t>(c.source.width) * pixel;
  resampler.rows({pixels.data() + static_cast<size_t>(region.y) * stride +
                      static_cast<size_t>(region.x) * pixel,
                  stride, region.height});
  EXPECT_EQ(out.back(), std::byte{0xa5});
  return out;
}

int between(Rng& rng, int low, int high) {
  return low + static_cast<int>(rng.below(static_cast<uint64_t>(high - low + 1)));
}

Case random_case(Rng& rng) {
  Case c;
  c.source = {between(rng, 1, 150), between(rng, 1, 60)};
  Size size{between(rng, 1, 90), between(rng, 1, 40)};
  if (rng.below(4) == 0) size.width = c.source.width;
  if (rng.below(4) == 0) size.height = c.source.height;
  c.view = resize_view(c.source, size, static_cast<Filter>(rng.below(3)));
  c.view.flip = rng.below(2) == 0;
  const auto shift = [&](int extent) {
    return between(rng, std::max(-3, 1 - extent), std::min(2, extent - 1));
  };
  if (rng.below(3) == 0)
    c.view.window = {shift(size.width), shift(size.height), size.width, size.height};
  constexpr int kChannels[] = {1, 3, 3, 4};
  c.channels = kChannels[rng.below(4)];
  constexpr DType kTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  c.store.dtype = kTypes[rng.below(4)];
  c.store.layout = static_cast<Layout>(rng.below(2));
  for (size_t i = 0; i < kMaxChannels; ++i) {
    c.store.scale[i] = static_cast<float>(rng.uniform(0.001, 0.02));
    c.store.bias[i] = static_cast<float>(rng.uniform(-2.5, 0.1));
  }
  return c;
}

TEST(KernelsTest, VectorsEqualPlainCode) {
  Rng rng{Key(2)};
  for (int i = 0; i < 3000; ++i) {
    const Case c = random_case(rng);
    const auto pixels = noise(c, static_cast<uint64_t>(i));
    ASSERT_EQ(render(c, pixels, vector_kernels()), render(c, pixels, scalar_kernels()))
        << i << ": " << c.source.width << " x " << c.source.height << " to " << c.view.size.width
        << " x " << c.view.size.height << ", " << c.channels << " channels, "
        << dtype_name(c.store.dtype);
  }
}

// Every byte through every float type, so that each rounding is seen.
TEST(KernelsTest, FloatsAreRoundedOnceAndToEven) {
  Case c{{256, 1}, identity_view({256, 1}), 1, {}};
  std::vector<uint8_t> ramp(256 + kRowSlack);
  for (size_t i = 0; i < 256; ++i) ramp[i] = static_cast<uint8_t>(i);
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    c.store.dtype = dtype;
    for (const auto& [scale, bias] :
         {std::pair{1.0f, 0.0f}, {0.0171f, -2.1179f}, {1e-7f, 0.0f}, {300.0f, 1.0f}}) {
      c.store.scale[0] = scale;
      c.store.bias[0] = bias;
      EXPECT_EQ(render(c, ramp, vector_kernels()), render(c, ramp, scalar_kernels()))
          << dtype_name(dtype);
    }
  }
}

TEST(KernelsTest, VectorsAreUsedWhereTheyAreThere) {
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_STRNE(vector_kernels().name, "scalar");
#endif
}

}  // namespace
}  // namespace headrace
