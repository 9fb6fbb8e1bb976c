// SPDX-License-Identifier: Apache-2.0
//
// ImageCodec: one way to store pictures, as one row of a table.  Decoding is a
// conversation that ends as early as it can: the codec reads the header, asks the
// sink what it wants, and gives it rows from top to bottom as they are decoded.
//
//   decode(bytes, options, sink)
//     ├─ sink.begin({width, height, channels})   ──► which region, which mode, how much smaller
//     ├─ sink.rows({first, stride, count})            … until the region's last row
//     └─ stops: what lies below the region is never read, nor is its damage noticed
//
// Rows are borrowed for the call: nothing is copied between decoder and resampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

struct ImageInfo {
  int width = 0;
  int height = 0;
  int channels = 0;  // as stored: 1 gray, 3 colour, 4 CMYK or alpha
};

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const Box&) const = default;
};

// What the rows hold; the number is that of bytes per pixel.
enum class PixelMode : uint8_t { kGray = 1, kRgb = 3 };

inline constexpr int channels_of(PixelMode mode) {
  return static_cast<int>(mode);
}

// A region of the picture made `shrink` times smaller (1, 2, 4 or 8; each side rounded up).
// With shrink 1 its pixels are those of a full decode, bit for bit.
struct ImageRequest {
  Box region;
  PixelMode mode = PixelMode::kRgb;
  int shrink = 1;
};

// 64 bytes may be read past the end of each row, so that vectors need no tails.
inline constexpr size_t kRowSlack = 64;

struct Rows {
  const uint8_t* first = nullptr;
  size_t stride = 0;
  int count = 0;
};

// One thread at a time.  An error from either call ends the decode and is returned by it.
class ImageSink {
 public:
  virtual ~ImageSink() = default;
  virtual Result<ImageRequest> begin(const ImageInfo& info) = 0;
  virtual Status rows(const Rows& rows) = 0;
};

struct ImageOptions {
  // Twice Pillow's MAX_IMAGE_PIXELS: above this Pillow refuses as well.
  uint64_t max_pixels = 178'956'970;
  // Each scan of a progressive JPEG costs a pass over all its blocks; encoders write about ten.
  int max_scans = 500;
};

struct ImageCodec {
  std::string_view name;
  std::string_view doc;
  bool (*sniff)(Bytes head);  // by the first 16 bytes
  bool can_shrink;            // takes ImageRequest::shrink beyond 1
  Result<ImageInfo> (*probe)(Bytes bytes);
  Status (*decode)(Bytes bytes, const ImageOptions& options, ImageSink& sink);
};

std::span<const ImageCodec* const> all_image_codecs();
// By the bytes, never by the name: files lie about their extensions.
Result<const ImageCodec*> find_image_codec(Bytes bytes);

// Whether `region` is not empty and lies within a picture of this size.
bool contains(int width, int height, const Box& region);

}  // namespace headrace
