// SPDX-License-Identifier: Apache-2.0
//
// Deferred values: a decoder may end in the stored bytes and what was drawn for them, and leave the
// rest to a later stage that works elsewhere (a device).  A value of such a column is u8[?]:
//
//   offset  0                 64                                  n
//           +-----------------+-----------------------------------+
//           | DeferredPicture | the stored bytes, as they were    |
//           +-----------------+-----------------------------------+
//
// The record is in this machine's byte order: it never leaves the machine.  What is the same for
// all values of the column is in its DeferredSpec.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/bytes.h"
#include "base/status.h"
#include "codec/image.h"
#include "codec/tensor.h"

namespace headrace {

// What is drawn for one picture:
//   source ──box──► resampled to width × height ──window──► ──flips──► result (the window's size)
struct DeferredPicture {
  int32_t source_width = 0;  // as the picture's header says
  int32_t source_height = 0;
  int32_t box_x = 0;  // within the source
  int32_t box_y = 0;
  int32_t box_width = 0;
  int32_t box_height = 0;
  int32_t width = 0;  // of the box, resampled
  int32_t height = 0;
  int32_t window_x =
      0;  // of the resampled picture; where it reaches outside, the result is padding
  int32_t window_y = 0;
  int32_t window_width = 0;
  int32_t window_height = 0;
  uint8_t filter = 0;               // 0 nearest, 1 bilinear, 2 bicubic, 3 Lanczos, as Pillow's
  uint8_t flip = 0;                 // 1: left and right change places
  uint8_t flip_down = 0;            // 1: top and bottom do
  uint8_t border = 0;               // of the padding: 0 `fill`, 1 edge, 2 reflect, 3 symmetric
  std::array<uint8_t, 4> fill{};    // of each channel
  std::array<uint8_t, 8> unused{};  // zeros
  bool operator==(const DeferredPicture&) const = default;
};
static_assert(sizeof(DeferredPicture) == 64 && std::is_trivially_copyable_v<DeferredPicture>);

// What a later stage makes of every value.
struct DeferredSpec {
  TensorSpec result;                 // extents that differ from picture to picture are kVaries
  PixelMode mode = PixelMode::kRgb;  // what the codec is to give
  bool channels_first = true;        // [channels, height, width]
  std::array<float, 4> scale{1, 1, 1, 1};  // a pixel v of channel c becomes v * scale[c] + bias[c]
  std::array<float, 4> bias{};
  bool is_scaled = false;  // false: pixels stay as they are, and scale and bias are 1 and 0
};

struct DeferredValue {
  DeferredPicture picture;
  Bytes stored;
};

// The two parts of a value.
inline Result<DeferredValue> split_deferred(Bytes value) {
  if (value.size() < sizeof(DeferredPicture))
    return corrupt("a deferred picture without its record").at(value.size());
  DeferredValue out;
  std::memcpy(&out.picture, value.data(), sizeof out.picture);
  out.stored = value.subspan(sizeof out.picture);
  return out;
}

}  // namespace headrace
