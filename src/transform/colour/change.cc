// SPDX-License-Identifier: Apache-2.0
//
// Changes whose draws are known (codec/deferred.h), made here; src/device/pictures.cu makes the
// same on a device.
#include <algorithm>

#include "base/rng.h"
#include "transform/colour/colour.h"

namespace headrace {
namespace {

// What torchvision's N(0, 1) after normalize(IMAGENET) looks like before it, in levels.
constexpr double kMean[] = {0.485 * 255, 0.456 * 255, 0.406 * 255};
constexpr double kDeviation[] = {0.229 * 255, 0.224 * 255, 0.225 * 255};

// Nearly normal, of mean 0 and deviation 1: four uniform numbers of 16 bits, added.
double noise(uint64_t bits) {
  int64_t sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<int64_t>((bits >> (16 * k)) & 0xffff);
  constexpr double kRoot3 = 1.7320508075688772;
  return (static_cast<double>(sum) - 2 * 65535.0) / 65536 * kRoot3;
}

uint8_t random_level(size_t c, uint64_t bits) {
  return static_cast<uint8_t>(std::clamp(kMean[c] + kDeviation[c] * noise(bits), 0.0, 255.0));
}

void erase(const Pixels& pixels, const PixelChange& change) {
  const auto channels = static_cast<size_t>(pixels.channels);
  for (int y = 0; y < change.height; ++y) {
    uint8_t* p = pixels.row(change.y + y) + static_cast<size_t>(change.x) * channels;
    for (int x = 0; x < change.width; ++x, p += channels)
      for (size_t c = 0; c < channels; ++c) p[c] = static_cast<uint8_t>(change.colour >> (8 * c));
  }
}

// Number i of the box's pixels and channels, row by row, gets the i-th random number.
void erase_with_noise(const Pixels& pixels, const PixelChange& change) {
  const auto channels = static_cast<size_t>(pixels.channels);
  for (int y = 0; y < change.height; ++y) {
    uint8_t* p = pixels.row(change.y + y) + static_cast<size_t>(change.x) * channels;
    const int row = (change.mirrored & 2) != 0 ? change.height - 1 - y : y;
    for (int x = 0; x < change.width; ++x, p += channels) {
      const int column = (change.mirrored & 1) != 0 ? change.width - 1 - x : x;
      const auto pixel = static_cast<uint64_t>(row) * static_cast<uint64_t>(change.width) +
                         static_cast<uint64_t>(column);
      for (size_t c = 0; c < channels; ++c)
        p[c] = random_level(std::min<size_t>(c, 2),
                            mix64(change.noise + (pixel * channels + c + 1) * kGolden64));
    }
  }
}

}  // namespace

void apply_change(const Pixels& pixels, const PixelChange& change) {
  switch (change.kind) {
    case PixelChange::kBrightness:
      return adjust_brightness(pixels, change.factor);
    case PixelChange::kContrast:
      return adjust_contrast(pixels, change.factor);
    case PixelChange::kSaturation:
      return adjust_saturation(pixels, change.factor);
    case PixelChange::kHue:
      return adjust_hue(pixels, change.factor);
    case PixelChange::kGray:
      return make_gray(pixels);
    case PixelChange::kErase:
      return erase(pixels, change);
    default:
      return erase_with_noise(pixels, change);
  }
}

}  // namespace headrace
