// SPDX-License-Identifier: Apache-2.0
//
// PixelOutput: what the last pass makes of u8 pixels: type, layout, normalisation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/tensor.h"
#include "transform/geometry/geometry.h"

namespace headrace {

inline constexpr int kMaxChannels = 4;

enum class Layout : uint8_t { kNCHW, kNHWC };

// A pixel v of channel c becomes v * scale[c] + bias[c], rounded once, then once more to
// dtype; a u8 stays as it is.
struct PixelOutput {
  DType dtype = DType::kU8;
  Layout layout = Layout::kNCHW;
  std::array<float, kMaxChannels> scale{1, 1, 1, 1};
  std::array<float, kMaxChannels> bias{};
  bool cast = false;  // the user chose the type
  bool normalized = false;

  std::vector<int64_t> shape(Size size, int channels) const {
    if (layout == Layout::kNCHW) return {channels, size.height, size.width};
    return {size.height, size.width, channels};
  }
};

}  // namespace headrace
