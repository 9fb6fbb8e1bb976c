// SPDX-License-Identifier: Apache-2.0
//
// WebP through libwebp, lossy or lossless; lossless keeps the colours under transparent pixels.
#include <webp/encode.h>

#include <cstring>
#include <string>
#include <vector>

#include "codec/encode.h"

namespace headrace {
namespace {

constexpr int kMaxSide = WEBP_MAX_DIMENSION;

// libwebp's picture and what it wrote, freed together.
struct Session {
  WebPPicture picture{};
  WebPMemoryWriter written{};
  bool ready = WebPPictureInit(&picture) != 0;
  Session() { WebPMemoryWriterInit(&written); }
  ~Session() {
    WebPPictureFree(&picture);
    WebPMemoryWriterClear(&written);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

bool import(const Picture& from, WebPPicture& to) {
  const int stride = static_cast<int>(from.stride == 0 ? from.row_bytes() : from.stride);
  if (from.mode == PixelMode::kRgb) return WebPPictureImportRGB(&to, from.pixels, stride) != 0;
  if (from.mode == PixelMode::kRgba) return WebPPictureImportRGBA(&to, from.pixels, stride) != 0;
  // WebP has no gray.
  std::vector<uint8_t> rgb;
  rgb.reserve(3 * from.row_bytes() * static_cast<size_t>(from.height));
  for (int y = 0; y < from.height; ++y)
    for (int x = 0; x < from.width; ++x) rgb.insert(rgb.end(), 3, from.row(y)[x]);
  return WebPPictureImportRGB(&to, rgb.data(), 3 * from.width) != 0;
}

Result<Buffer> encode(const Picture& picture, const EncodeOptions& options) {
  HEADRACE_TRY(check_picture(picture, options));
  if (picture.width > kMaxSide || picture.height > kMaxSide)
    return invalid("WebP: a side is at most " + std::to_string(kMaxSide) + " pixels");
  WebPConfig config;
  Session session;
  if (WebPConfigInit(&config) == 0 || !session.ready)
    return internal("WebP: another libwebp than compiled");
  config.quality = static_cast<float>(options.quality);
  config.lossless = options.lossless ? 1 : 0;
  config.exact = options.lossless ? 1 : 0;
  session.picture.use_argb = options.lossless ? 1 : 0;
  session.picture.width = picture.width;
  session.picture.height = picture.height;
  session.picture.writer = WebPMemoryWrite;
  session.picture.custom_ptr = &session.written;
  if (!import(picture, session.picture) || WebPEncode(&config, &session.picture) == 0)
    return exhausted("WebP: the encoder's error " + std::to_string(session.picture.error_code));
  Buffer out(session.written.size);
  std::memcpy(out.data(), session.written.mem, session.written.size);
  return out;
}

}  // namespace

extern constinit const ImageEncoder encode_webp_row{"webp", "webp", encode};

}  // namespace headrace
