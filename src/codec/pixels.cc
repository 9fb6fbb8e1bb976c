// SPDX-License-Identifier: Apache-2.0
#include "codec/pixels.h"

#include <algorithm>

namespace headrace {
namespace {

// a * b / 255, rounded, for a and b up to 255.
int scale255(int a, int b) {
  const int t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

}  // namespace

void rgb_to_gray(const uint8_t* rgb, uint8_t* gray, int pixels) {
  for (int i = 0; i < pixels; ++i, rgb += 3) {
    // 0.299, 0.587, 0.114 of 2^16.
    const uint32_t luma = rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u;
    gray[i] = static_cast<uint8_t>((luma + 0x8000u) >> 16);
  }
}

void inverted_cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, int pixels) {
  for (int i = 0; i < pixels; ++i, cmyk += 4, rgb += 3) {
    const int white = cmyk[3];
    for (int c = 0; c < 3; ++c)
      rgb[c] = static_cast<uint8_t>(white - scale255(255 - cmyk[c], white));
  }
}

void rgb_to_rgba(const uint8_t* rgb, uint8_t* rgba, int pixels) {
  for (ptrdiff_t i = pixels - 1; i >= 0; --i) {
    const uint8_t r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
    rgba[4 * i] = r, rgba[4 * i + 1] = g, rgba[4 * i + 2] = b, rgba[4 * i + 3] = 255;
  }
}

void premultiply(const uint8_t* rgba, uint8_t* out, size_t pixels) {
  for (size_t i = 0; i < 4 * pixels; i += 4) {
    const uint8_t alpha = rgba[i + 3];
    for (size_t c = 0; c < 3; ++c) out[i + c] = static_cast<uint8_t>(scale255(rgba[i + c], alpha));
    out[i + 3] = alpha;
  }
}

void unpremultiply_planes(uint8_t* rgba, size_t plane, size_t pixels) {
  for (size_t i = 0; i < pixels; ++i) {
    const int alpha = rgba[3 * plane + i];
    if (alpha == 0 || alpha == 255) continue;
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& v = rgba[c * plane + i];
      v = static_cast<uint8_t>(std::min(255, 255 * v / alpha));
    }
  }
}

}  // namespace headrace
