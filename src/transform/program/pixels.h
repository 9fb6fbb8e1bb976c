// SPDX-License-Identifier: Apache-2.0
//
// Pixels: a picture between two passes, for the steps that change it in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transform/geometry/geometry.h"

namespace headrace {

// u8 pixels in rows without gaps, channels interleaved.
struct Pixels {
  uint8_t* data = nullptr;
  Size size;
  int channels = 0;  // 1 gray, 3 colour, 4 colour and alpha

  // Those that colour steps change: alpha stays as it is.
  int colours() const { return channels == 1 ? 1 : 3; }
  size_t count() const {
    return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  }
  size_t stride() const { return static_cast<size_t>(size.width) * static_cast<size_t>(channels); }
  size_t bytes() const { return count() * static_cast<size_t>(channels); }
  uint8_t* row(int y) const { return data + static_cast<size_t>(y) * stride(); }
};

// The same picture in memory of this thread's own, until the next call.
Pixels copy_for_reading(const Pixels& pixels);

}  // namespace headrace
