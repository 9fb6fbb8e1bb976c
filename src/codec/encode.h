// SPDX-License-Identifier: Apache-2.0
//
// ImageEncoder: pixels to the bytes of a file, one row of a table for each kind.
#pragma once

#include <span>
#include <string_view>

#include "base/buffer.h"
#include "codec/image.h"
#include "codec/jpeg_layout.h"

namespace headrace {

// Borrowed pixels, channels interleaved.
struct Picture {
  const uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  PixelMode mode = PixelMode::kRgb;
  size_t stride = 0;  // bytes from row to row; 0: no gaps

  size_t row_bytes() const {
    return static_cast<size_t>(width) * static_cast<size_t>(channels_of(mode));
  }
  const uint8_t* row(int y) const {
    return pixels + static_cast<size_t>(y) * (stride == 0 ? row_bytes() : stride);
  }
};

struct EncodeOptions {
  int quality = 90;       // 1 to 100, as libjpeg and libwebp count; PNG has none
  bool lossless = false;  // WebP; PNG always is, JPEG never
  JpegSampling sampling = JpegSampling::k420;  // of a JPEG in colour
};

// The same pixels give the same bytes.
struct ImageEncoder {
  std::string_view name;    // "jpeg", "png", "webp"
  std::string_view suffix;  // "jpg", …: the name of a field that holds such pictures
  Result<Buffer> (*encode)(const Picture& picture, const EncodeOptions& options);
};

std::span<const ImageEncoder* const> all_image_encoders();
// Unknown, or not in this build: the error lists what there is.
Result<const ImageEncoder*> find_image_encoder(std::string_view name);

// For the encoders: what none of them takes.
Status check_picture(const Picture& picture, const EncodeOptions& options);

}  // namespace headrace
