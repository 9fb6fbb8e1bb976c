// SPDX-License-Identifier: Apache-2.0
//
// PNG through libspng, eight bits.
#include <spng.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "codec/encode.h"

namespace headrace {
namespace {

uint8_t colour_type(PixelMode mode) {
  switch (mode) {
    case PixelMode::kGray:
      return SPNG_COLOR_TYPE_GRAYSCALE;
    case PixelMode::kRgb:
      return SPNG_COLOR_TYPE_TRUECOLOR;
    default:
      return SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  }
}

// Writes all rows; the number of libspng's error, or 0.
int write(spng_ctx* c, const Picture& picture) {
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(picture.width);
  header.height = static_cast<uint32_t>(picture.height);
  header.bit_depth = 8;
  header.color_type = colour_type(picture.mode);
  if (const int e = spng_set_option(c, SPNG_ENCODE_TO_BUFFER, 1); e != 0) return e;
  if (const int e = spng_set_ihdr(c, &header); e != 0) return e;
  const int flags = SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE;
  if (const int e = spng_encode_image(c, nullptr, 0, SPNG_FMT_PNG, flags); e != 0) return e;
  for (int y = 0; y < picture.height; ++y) {
    const int e = spng_encode_row(c, picture.row(y), picture.row_bytes());
    if (e != 0 && e != SPNG_EOI) return e;
  }
  return 0;
}

Result<Buffer> encode(const Picture& picture, const EncodeOptions& options) {
  HEADRACE_TRY(check_picture(picture, options));
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> c(spng_ctx_new(SPNG_CTX_ENCODER),
                                                         spng_ctx_free);
  if (c == nullptr) return exhausted("PNG: out of memory");
  int error = write(c.get(), picture);
  size_t size = 0;
  const std::unique_ptr<void, void (*)(void*)> data(
      error == 0 ? spng_get_png_buffer(c.get(), &size, &error) : nullptr, std::free);
  if (data == nullptr) return invalid(std::string("PNG: ") + spng_strerror(error));
  Buffer out(size);
  std::memcpy(out.data(), data.get(), size);
  return out;
}

}  // namespace

extern constinit const ImageEncoder encode_png_row{"png", "png", encode};

}  // namespace headrace
