// SPDX-License-Identifier: Apache-2.0
//
// Deferred values: a decoder may end in the stored bytes and what was drawn for them, and leave the
// rest to a later stage that works elsewhere (a device).  A value of such a column is u8[?]:
//
//   offset  0                 64                 64 + 48 changes         n - slack      n
//           +-----------------+------------------+-----------------------+--------------+
//           | DeferredPicture | PixelChanges     | the stored bytes, or  | zeros, for   |
//           |                 |                  | pixels: is_rendered   | nvJPEG       |
//           +-----------------+------------------+-----------------------+--------------+
//
// The record is in this machine's byte order: it never leaves the machine.  What is the same for
// all values of the column is in its DeferredSpec.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "codec/decode_share.h"
#include "codec/image.h"
#include "codec/jpeg_layout.h"
#include "codec/tensor.h"

namespace headrace {

// What is drawn for one picture:
//   source ──turned──box──► resampled to width × height ──window──► ──flips──► the changes ──►
// result (the window's size)
struct DeferredPicture {
  int32_t source_width = 0;  // as the picture's header says
  int32_t source_height = 0;
  int32_t box_x = 0;  // within the source, turned
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
  uint8_t sampling = 0;             // JpegSampling, of stored bytes that a chip can decode
  uint8_t is_rendered = 0;          // 1: what follows is the result, u8[height, width, channels]
  uint8_t orientation = 0;          // 1 mirrored across, 2 down, 4 transposed: codec/exif.h
  uint8_t changes = 0;              // that follow the record
  uint16_t slack = 0;               // zeros behind the stored bytes
  std::array<uint8_t, 2> unused{};  // zeros
  bool operator==(const DeferredPicture&) const = default;
};
static_assert(sizeof(DeferredPicture) == 64 && std::is_trivially_copyable_v<DeferredPicture>);

// What a step does to the pixels of one picture, with all that it drew.  A list of them is done in
// its order.
struct PixelChange {
  enum Kind : int32_t {
    kBrightness = 1,
    kContrast,
    kSaturation,
    kHue,
    kGray,
    kErase,  // a box gets one colour
    kNoise,  // a box gets random colours
  };
  int32_t kind = 0;
  int32_t turn = 0;                             // kHue: sixths of the way round, times 2^16
  double factor = 1;                            // the first three; kHue: of the way round
  int32_t x = 0, y = 0, width = 0, height = 0;  // the box
  uint32_t colour = 0;                          // a byte a channel
  int32_t mirrored = 0;  // kNoise: 1 its columns, 2 its rows are in the other order
  uint64_t noise = 0;    // the state of its Rng
};
static_assert(sizeof(PixelChange) == 48 && std::is_trivially_copyable_v<PixelChange>);

// Asked of a field whose batches go to a device.
struct LateWork {
  std::shared_ptr<DecodeShare> share;  // null: the device decodes no pictures
  std::string why_on_cpu;              // told by the decoder: why it leaves it no stored bytes
};

// What a later stage makes of every value.
struct DeferredSpec {
  TensorSpec result;                 // extents that differ from picture to picture are kVaries
  PixelMode mode = PixelMode::kRgb;  // what the codec is to give
  bool channels_first = true;        // [channels, height, width]
  std::array<float, 4> scale{1, 1, 1, 1};  // a pixel v of channel c becomes v * scale[c] + bias[c]
  std::array<float, 4> bias{};
  bool is_scaled = false;   // false: pixels stay as they are, and scale and bias are 1 and 0
  bool has_pixels = false;  // values are u8[height, width, channels], and no record is before them
  ImageOptions limits = {};
  std::shared_ptr<DecodeShare> share = {};  // null: all are left to the stage
};

struct DeferredValue {
  DeferredPicture picture;
  std::vector<PixelChange> changes;
  Bytes stored;
};

// The parts of a value.
inline Result<DeferredValue> split_deferred(Bytes value) {
  DeferredValue out;
  if (value.size() < sizeof out.picture)
    return corrupt("a deferred picture without its record").at(value.size());
  std::memcpy(&out.picture, value.data(), sizeof out.picture);
  const size_t changes = out.picture.changes * sizeof(PixelChange);
  const Bytes rest = value.subspan(sizeof out.picture);
  if (rest.size() < changes + out.picture.slack)
    return corrupt("a deferred picture that ends within its record").at(value.size());
  out.changes.resize(out.picture.changes);
  if (changes > 0) std::memcpy(out.changes.data(), rest.data(), changes);
  out.stored = rest.subspan(changes, rest.size() - changes - out.picture.slack);
  return out;
}

}  // namespace headrace
