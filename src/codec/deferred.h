// SPDX-License-Identifier: Apache-2.0
//
// Deferred values: a decoder may end in the stored bytes and what was drawn for them, and leave the
// rest to a later stage that works elsewhere (a device).  A value of such a column is u8[?]:
//
//   offset  0                 64                                  n
//           +-----------------+-----------------------------------+
//           | DeferredPicture | the stored bytes, as they were;   |
//           |                 | or pixels: see is_rendered        |
//           +-----------------+-----------------------------------+
//
// The record is in this machine's byte order: it never leaves the machine.  What is the same for
// all values of the column is in its DeferredSpec.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "base/bytes.h"
#include "base/status.h"
#include "codec/image.h"
#include "codec/jpeg_layout.h"
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
  uint8_t sampling = 0;             // JpegSampling, of stored bytes that a chip can decode
  uint8_t is_rendered = 0;          // 1: what follows is the result, u8[height, width, channels]
  std::array<uint8_t, 6> unused{};  // zeros
  bool operator==(const DeferredPicture&) const = default;
};
static_assert(sizeof(DeferredPicture) == 64 && std::is_trivially_copyable_v<DeferredPicture>);

// Which pictures are left to a device's own decoder, and which the CPU's threads decode.  Shared by
// the decoders of a field and the stage that follows.  Thread-safe.
class DecodeShare {
 public:
  // `samplings`: those that the device decodes, a bit each (1 << JpegSampling).  `most_waiting`:
  // with so many pictures waiting for the device the CPU decodes the next itself; 0: never.
  DecodeShare(unsigned samplings, int64_t most_waiting)
      : samplings_(samplings), most_waiting_(most_waiting) {}

  // Whether the device takes this one.
  bool leave_to_device(JpegSampling sampling) {
    if ((samplings_ >> static_cast<unsigned>(sampling) & 1u) == 0) return false;
    if (most_waiting_ > 0 && waiting_.load(std::memory_order_relaxed) >= most_waiting_)
      return false;
    on_device_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  // By the stage: what it has been given, and what the device has done.  Pictures of batches that
  // never come to the stage do not count.
  void handed_over(int64_t pictures) { waiting_.fetch_add(pictures, std::memory_order_relaxed); }
  void finished(int64_t pictures) { waiting_.fetch_sub(pictures, std::memory_order_relaxed); }
  void count_on_cpu() { on_cpu_.fetch_add(1, std::memory_order_relaxed); }

  uint64_t on_device() const { return on_device_.load(std::memory_order_relaxed); }
  uint64_t on_cpu() const { return on_cpu_.load(std::memory_order_relaxed); }

 private:
  const unsigned samplings_;
  const int64_t most_waiting_;
  std::atomic<int64_t> waiting_{0};
  std::atomic<uint64_t> on_device_{0}, on_cpu_{0};
};

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
