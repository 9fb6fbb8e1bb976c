// SPDX-License-Identifier: Apache-2.0
//
// The codec table.  A name listed in codecs.inc without a <name>_codec is a link error.
#include "codec/image.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace headrace {
namespace {

// What pictures of other formats begin with.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
    {"JPEG", "\xff\xd8\xff"}, {"PNG", "\x89PNG"},     {"WebP", "RIFF"},
    {"GIF", "GIF8"},          {"BMP", "BM"},          {"TIFF", "II*"},
    {"TIFF", "MM"},           {"JPEG XL", "\xff\x0a"}};

}  // namespace

#define HEADRACE_CODEC(name) extern const ImageCodec name##_codec;
#include "codec/codecs.inc"
#undef HEADRACE_CODEC

std::span<const ImageCodec* const> all_image_codecs() {
#define HEADRACE_CODEC(name) &name##_codec,
  static constexpr const ImageCodec* kAll[] = {
#include "codec/codecs.inc"
      nullptr,  // a build without any codec is a build
  };
#undef HEADRACE_CODEC
  return std::span(kAll).first(std::size(kAll) - 1);
}

Result<const ImageCodec*> find_image_codec(Bytes bytes) {
  if (bytes.empty()) return corrupt("the picture has no bytes").at(0);
  const Bytes head = bytes.first(std::min<size_t>(bytes.size(), 16));
  std::string known;
  for (const ImageCodec* codec : all_image_codecs()) {
    if (codec->sniff(head)) return codec;
    known.append(known.empty() ? "" : ", ").append(codec->name);
  }
  // Good data that this build cannot read is never "replaced".
  for (const auto& [name, magic] : kOthers)
    if (as_text(head).substr(0, magic.size()) == magic)
      return unsupported("a " + std::string(name) + " picture; this build decodes " + known);
  return corrupt("not a picture (this build knows: " + known + ")").at(0);
}

bool contains(int width, int height, const Box& region) {
  return region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
         region.x <= width - region.width && region.y <= height - region.height;
}

}  // namespace headrace
