// SPDX-License-Identifier: Apache-2.0
//
// The table of encoders.  A name listed in encoders.inc without a <name>_row is a link error.
#include "codec/encode.h"

#include <iterator>
#include <string>

namespace headrace {

#define HEADRACE_ENCODER(name) extern const ImageEncoder name##_row;
#include "codec/encoders.inc"
#undef HEADRACE_ENCODER

std::span<const ImageEncoder* const> all_image_encoders() {
#define HEADRACE_ENCODER(name) &name##_row,
  static constexpr const ImageEncoder* kAll[] = {
#include "codec/encoders.inc"
      nullptr,  // a build without any encoder is a build
  };
#undef HEADRACE_ENCODER
  return std::span(kAll).first(std::size(kAll) - 1);
}

Result<const ImageEncoder*> find_image_encoder(std::string_view name) {
  std::string known;
  for (const ImageEncoder* encoder : all_image_encoders()) {
    if (encoder->name == name) return encoder;
    known.append(known.empty() ? "" : ", ").append(encoder->name);
  }
  return unsupported("this build writes no '" + std::string(name) + "'; it writes " + known);
}

Status check_picture(const Picture& picture, const EncodeOptions& options) {
  if (picture.mode == PixelMode::kNumbers) return invalid("numbers are written as gray");
  if (picture.width < 1 || picture.height < 1) return invalid("a picture without pixels");
  if (picture.stride != 0 && picture.stride < picture.row_bytes())
    return invalid("rows that overlap");
  if (options.quality < 1 || options.quality > 100) return invalid("quality is from 1 to 100");
  return {};
}

}  // namespace headrace
