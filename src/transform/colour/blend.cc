// SPDX-License-Identifier: Apache-2.0
//
// A picture mixed with its mean gray, and made gray.
#include "transform/colour/colour.h"
#include "transform/colour/gray.h"

namespace headrace {
namespace {

double mean_gray(const Pixels& pixels) {
  const auto step = static_cast<size_t>(pixels.channels);
  const uint8_t* end = pixels.data + pixels.bytes();
  uint64_t sum = 0;
  if (step == 1)
    for (const uint8_t* p = pixels.data; p != end; ++p) sum += *p;
  else
    for (const uint8_t* p = pixels.data; p != end; p += step) sum += gray_of(p);
  return static_cast<double>(sum) / static_cast<double>(pixels.count());
}

}  // namespace

void adjust_contrast(const Pixels& pixels, double factor) {
  const auto f = static_cast<float>(factor);
  const double rest = static_cast<float>(1 - factor);
  const double other = static_cast<float>(mean_gray(pixels)) * rest;
  Levels levels;
  for (size_t v = 0; v < levels.size(); ++v) levels[v] = blended(static_cast<uint8_t>(v), f, other);
  map_levels(pixels, levels);
}

void make_gray(const Pixels& pixels) {
  if (pixels.channels == 1) return;
  const uint8_t* end = pixels.data + pixels.bytes();
  for (uint8_t* p = pixels.data; p != end; p += pixels.channels)
    p[0] = p[1] = p[2] = static_cast<uint8_t>(gray_of(p));
}

}  // namespace headrace
