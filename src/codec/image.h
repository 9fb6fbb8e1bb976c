// SPDX-License-Identifier: Apache-2.0
//
// ImageCodec: one way to store pictures, as one row of a table.  Decoding is a
// conversation that ends as early as it can: the codec reads the header, asks the
// sink what it wants, and gives it rows from top to bottom as they are decoded.
//
//   decode(bytes, options, sink)
//     ├─ sink.begin({width, height, channels})   ──► which region, which mode, how much smaller
//     ├─ sink.rows({first, stride, count})            … until the region's last row
//     └─ stops: what lies below the region is never decoded, nor is its damage noticed
//
// Rows are borrowed for the call: nothing is copied between decoder and resampler.
#pragma once

#include <atomic>
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
  int channels = 0;         // as stored: 1 gray, 2 gray with alpha, 3 colour, 4 CMYK or alpha
  bool can_shrink = false;  // ImageRequest::shrink may be more than 1
};

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const Box&) const = default;
};

// What the rows hold; the lower three bits are the number of bytes per pixel.  kNumbers: what is
// stored, as it is stored: indices into a palette, gray values that are not stretched to 255.
enum class PixelMode : uint8_t { kGray = 1, kRgb = 3, kRgba = 4, kNumbers = 9 };

inline constexpr int channels_of(PixelMode mode) {
  return static_cast<int>(mode) & 7;
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
  // Damage that the codec notices and can live with (a warning of libjpeg, a wrong checksum of a
  // PNG) is an error.  Else the picture is taken as the codec gives it, and counted.
  bool strict = true;
  std::atomic<uint64_t>* damaged = nullptr;  // counts such pictures
  // Set where a strict decode fails: whether it is by damage that one that is not strict takes.
  bool* tolerable = nullptr;
  // Turns the picture as its EXIF says, before the sink sees it (decode_image() does).
  bool orient = false;
};

struct ImageCodec {
  std::string_view name;
  std::string_view doc;
  std::string_view library;
  bool (*sniff)(Bytes head);  // by the first 18 bytes
  Result<ImageInfo> (*probe)(Bytes bytes);
  Status (*decode)(Bytes bytes, const ImageOptions& options, ImageSink& sink);
  // Its EXIF, from the TIFF header on; empty where there is none or it is damaged.  Null: the codec
  // turns pictures itself where options.orient says so.
  Bytes (*exif)(Bytes bytes);
};

std::span<const ImageCodec* const> all_image_codecs();
// By the bytes, never by the name: files lie about their extensions.
Result<const ImageCodec*> find_image_codec(Bytes bytes);
// The codec for pictures that no other takes; whoever embeds the engine may bring one.  It is asked
// for every picture whose kind is known.  Thread-safe; the codec must live for ever.
void set_fallback_image_codec(const ImageCodec* codec);
const ImageCodec* fallback_image_codec();
// "JPEG", "TIFF", … by the first bytes; "" for what is no picture, as far as is known.
std::string_view picture_kind(Bytes bytes);

// The whole way: finds the codec, turns the picture where the options say so.
Status decode_image(Bytes bytes, const ImageOptions& options, ImageSink& sink);
// kCorrupt: numbers are asked for, and the picture has none.
Status not_numbers(std::string_view kind);
// kCorrupt for a picture above the limit; `kind` is what it is called in the message.
Status check_size(std::string_view kind, const ImageInfo& info, const ImageOptions& options);

// Whether `region` is not empty and lies within a picture of this size.
bool contains(int width, int height, const Box& region);

}  // namespace headrace
