// SPDX-License-Identifier: Apache-2.0
//
// The gray of a pixel, and colours mixed with grays.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headrace {

// 0.2989 R + 0.587 G + 0.114 B, rounded down.  The weights in 23 bits, rounded up, are too large by
// less than 1/10000 in all, the least that the exact sum can be below a whole number.
inline constexpr int kGrayBits = 23;
inline constexpr uint32_t kRedWeight = 2507355;
inline constexpr uint32_t kGreenWeight = 4924113;
inline constexpr uint32_t kBlueWeight = 956302;

inline uint32_t gray_of(const uint8_t* p) {
  return (kRedWeight * p[0] + kGreenWeight * p[1] + kBlueWeight * p[2]) >> kGrayBits;
}

// colour * factor + other, to a level, rounded down.  torchvision computes in f32 with a fused
// multiply and add; the exact product in f64, added and rounded to f32, is the same number.
inline uint8_t blended(uint8_t colour, float factor, double other) {
  const float product = static_cast<float>(colour) * factor;
  const auto sum = static_cast<float>(static_cast<double>(product) + other);
  return static_cast<uint8_t>(static_cast<int>(std::min(std::max(sum, 0.0f), 255.0f)));
}

}  // namespace headrace
