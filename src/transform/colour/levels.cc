// SPDX-License-Identifier: Apache-2.0
//
// Changes that are a table of 256 levels for each channel.
#include <algorithm>
#include <cstring>

#include "transform/colour/colour.h"

namespace headrace {
namespace {

template <typename F>
Levels levels_by(F f) {
  Levels out;
  for (size_t v = 0; v < out.size(); ++v) out[v] = static_cast<uint8_t>(f(static_cast<int>(v)));
  return out;
}

using Histogram = std::array<uint32_t, 256>;

std::array<Histogram, 3> histograms(const Pixels& pixels) {
  std::array<Histogram, 3> out{};
  const auto step = static_cast<size_t>(pixels.channels);
  const auto colours = static_cast<size_t>(pixels.colours());
  const uint8_t* end = pixels.data + pixels.bytes();
  for (const uint8_t* p = pixels.data; p != end; p += step)
    for (size_t c = 0; c < colours; ++c) ++out[c][p[c]];
  return out;
}

// The darkest level becomes 0, the lightest 255.
Levels stretched(const Histogram& histogram) {
  int low = 0;
  int high = 255;
  while (low < 255 && histogram[static_cast<size_t>(low)] == 0) ++low;
  while (high > low && histogram[static_cast<size_t>(high)] == 0) --high;
  if (low == high) return levels_by([](int v) { return v; });
  const float scale = static_cast<float>(high - low) * static_cast<float>(1.0 / 255);
  return levels_by(
      [&](int v) { return std::clamp(static_cast<float>(v - low) / scale, 0.0f, 255.0f); });
}

// As many pixels at each level, as far as that goes.
Levels flattened(const Histogram& histogram, uint64_t count) {
  size_t last = 255;
  while (last > 0 && histogram[last] == 0) --last;
  const uint64_t step = (count - histogram[last]) / 255;
  if (step == 0) return levels_by([](int v) { return v; });
  Levels out;
  uint64_t below = 0;
  for (size_t v = 0; v < out.size(); ++v) {
    const uint64_t level = v == 0 ? 0 : (below + step / 2) / step;
    out[v] = static_cast<uint8_t>(std::min<uint64_t>(level, 255));
    below += histogram[v];
  }
  return out;
}

template <int kChannels>
void map_colours(uint8_t* p, const uint8_t* end, const std::array<Levels, 3>& levels) {
  for (; p != end; p += kChannels) {
    p[0] = levels[0][p[0]];
    p[1] = levels[1][p[1]];
    p[2] = levels[2][p[2]];
  }
}

}  // namespace

void map_levels(const Pixels& pixels, const Levels& levels) {
  if (pixels.channels == 4) return map_levels(pixels, {levels, levels, levels});
  const uint8_t* end = pixels.data + pixels.bytes();
  for (uint8_t* p = pixels.data; p != end; ++p) *p = levels[*p];
}

void map_levels(const Pixels& pixels, const std::array<Levels, 3>& by_channel) {
  if (pixels.channels == 1) return map_levels(pixels, by_channel[0]);
  uint8_t* end = pixels.data + pixels.bytes();
  if (pixels.channels == 3)
    map_colours<3>(pixels.data, end, by_channel);
  else
    map_colours<4>(pixels.data, end, by_channel);
}

void adjust_brightness(const Pixels& pixels, double factor) {
  const auto f = static_cast<float>(factor);
  map_levels(pixels, levels_by([&](int v) { return std::min(static_cast<float>(v) * f, 255.0f); }));
}

void posterize(const Pixels& pixels, int bits) {
  const int mask = 0xff << (8 - bits);
  map_levels(pixels, levels_by([&](int v) { return v & mask; }));
}

void solarize(const Pixels& pixels, double threshold) {
  const auto from = static_cast<float>(threshold);  // torch compares in f32
  map_levels(pixels, levels_by([&](int v) { return static_cast<float>(v) >= from ? 255 - v : v; }));
}

void invert(const Pixels& pixels) {
  map_levels(pixels, levels_by([](int v) { return 255 - v; }));
}

void autocontrast(const Pixels& pixels) {
  const auto h = histograms(pixels);
  map_levels(pixels, {stretched(h[0]), stretched(h[1]), stretched(h[2])});
}

void equalize(const Pixels& pixels) {
  const auto h = histograms(pixels);
  const uint64_t n = pixels.count();
  if (pixels.channels == 1) return map_levels(pixels, flattened(h[0], n));
  map_levels(pixels, {flattened(h[0], n), flattened(h[1], n), flattened(h[2], n)});
}

}  // namespace headrace
