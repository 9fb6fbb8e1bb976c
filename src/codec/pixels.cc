// SPDX-License-Identifier: Apache-2.0
#include "codec/pixels.h"

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

}  // namespace headrace
