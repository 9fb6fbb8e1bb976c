// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16 from and to float: to the nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace headrace {

// No NaN may come here.
inline uint16_t to_bf16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float from_bf16(uint16_t v) {
  return std::bit_cast<float>(static_cast<uint32_t>(v) << 16);
}

// No NaN may come here.
inline uint16_t to_f16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                        // below 2^-14: a multiple of 2^-24
    const float tiny = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1.0p24f);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(tiny));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float from_f16(uint16_t v) {
  const float sign = (v & 0x8000u) != 0 ? -1.0f : 1.0f;
  const uint32_t exponent = (v >> 10) & 0x1fu;
  const auto mantissa = static_cast<float>(v & 0x3ffu);
  if (exponent == 0) return sign * mantissa * 0x1.0p-24f;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VALF : NAN;
  return sign * std::ldexp(1024.0f + mantissa, static_cast<int>(exponent) - 25);
}

}  // namespace headrace
