// SPDX-License-Identifier: Apache-2.0
//
// The codec table.  A name listed in codecs.inc without a <name>_codec is a link error.
#include "codec/image.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <string_view>

#include "base/lfs_pointer.h"
#include "codec/exif.h"
#include "codec/turn.h"

namespace headrace {
namespace {

struct Kind {
  std::string_view name;
  size_t at;
  std::string_view magic;
};
using namespace std::string_view_literals;
// What pictures begin with.
constexpr Kind kKinds[] = {{"JPEG", 0, "\xff\xd8\xff"sv},
                           {"PNG", 0, "\x89PNG"sv},
                           {"WebP", 8, "WEBP"sv},
                           {"GIF", 0, "GIF8"sv},
                           {"BMP", 0, "BM"sv},
                           {"TIFF", 0, "II*\0"sv},
                           {"TIFF", 0, "MM\0*"sv},
                           {"TIFF", 0, "II+\0"sv},
                           {"TIFF", 0, "MM\0+"sv},
                           {"JPEG 2000", 4, "jP  \r\n"sv},
                           {"JPEG 2000", 0, "\xff\x4f\xff\x51"sv},
                           {"JPEG XL", 0, "\xff\x0a"sv},
                           {"JPEG XL", 4, "JXL \r\n"sv},
                           {"AVIF", 4, "ftypavif"sv},
                           {"AVIF", 4, "ftypavis"sv},
                           {"HEIC", 4, "ftyphei"sv},
                           {"QOI", 0, "qoif"sv},
                           {"PSD", 0, "8BPS"sv},
                           {"DDS", 0, "DDS "sv},
                           {"ICO", 0, "\0\0\1\0"sv},
                           {"ICNS", 0, "icns"sv},
                           {"SGI", 0, "\x01\xda"sv},
                           {"Sun raster", 0, "\x59\xa6\x6a\x95"sv},
                           {"BLP", 0, "BLP1"sv},
                           {"BLP", 0, "BLP2"sv},
                           {"MSP", 0, "DanM"sv},
                           {"MSP", 0, "LinS"sv},
                           {"FITS", 0, "SIMPLE  ="sv}};

constexpr size_t kHead = 18;  // bytes that tell

bool among(char c, std::string_view all) {
  return all.find(c) != std::string_view::npos;
}

// "P1" to "P6", "Pf" and "PF", and a blank or a comment.
bool is_pnm(std::string_view head) {
  return head.size() > 2 && head[0] == 'P' && among(head[1], "123456fF"sv) &&
         among(head[2], " \t\r\n#"sv);
}

// | 10 | version 0, 2, 3, 5 | 1: run lengths | bits 1, 2, 4, 8 | …
bool is_pcx(std::string_view head) {
  return head.size() > 3 && head[0] == 10 && among(head[1], "\0\2\3\5"sv) && head[2] == 1 &&
         among(head[3], "\1\2\4\10"sv);
}

// TGA begins with no mark, so all of its header has to make sense:
// | name's length | has map | type | 5 bytes of the map | 4 of the origin | width | height | bits |
// flags |
bool is_tga(std::string_view head) {
  if (head.size() < kHead) return false;
  const auto byte = [head](size_t i) { return static_cast<unsigned char>(head[i]); };
  const int type = byte(2) & ~8;  // 8: in run lengths
  const int bits = byte(16);
  const bool has_map = byte(1) == 1;
  const bool no_map = byte(1) == 0 && head.substr(3, 5) == "\0\0\0\0\0"sv;
  const bool fits = (type == 1 && has_map && bits == 8) ||
                    (type == 2 && no_map && (bits == 16 || bits == 24 || bits == 32)) ||
                    (type == 3 && no_map && (bits == 8 || bits == 16));
  const bool has_size = byte(12) + byte(13) > 0 && byte(14) + byte(15) > 0;
  return fits && has_size && byte(2) < 16 && (byte(17) & 0xc0) == 0 && (byte(17) & 15) <= 8;
}

std::atomic<const ImageCodec*> fallback{nullptr};

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

void set_fallback_image_codec(const ImageCodec* codec) {
  fallback.store(codec, std::memory_order_release);
}
const ImageCodec* fallback_image_codec() {
  return fallback.load(std::memory_order_acquire);
}

std::string_view picture_kind(Bytes bytes) {
  const std::string_view head = as_text(bytes.first(std::min(bytes.size(), kHead)));
  for (const Kind& kind : kKinds)
    if (head.size() > kind.at && head.substr(kind.at).starts_with(kind.magic)) return kind.name;
  if (is_pnm(head)) return "PNM";
  if (is_pcx(head)) return "PCX";
  return is_tga(head) ? "TGA" : "";
}

Result<const ImageCodec*> find_image_codec(Bytes bytes) {
  if (bytes.empty()) return corrupt("the picture has no bytes").at(0);
  const Bytes head = bytes.first(std::min(bytes.size(), kHead));
  std::string known;
  for (const ImageCodec* codec : all_image_codecs()) {
    if (codec->sniff(head)) return codec;
    known.append(known.empty() ? "" : ", ").append(codec->name);
  }
  const std::string_view kind = picture_kind(head);
  if (is_lfs_pointer(bytes)) return corrupt(kLfsPointer).at(0);
  if (kind.empty()) return corrupt("not a picture (this build knows: " + known + ")").at(0);
  if (const ImageCodec* last = fallback_image_codec(); last != nullptr && last->sniff(head))
    return last;
  return unsupported("a " + std::string(kind) + " picture; this build decodes " + known);
}

Status not_numbers(std::string_view kind) {
  return corrupt(std::string(kind) + ": colours, where mode 'P' takes one number a pixel");
}

Status check_size(std::string_view kind, const ImageInfo& info, const ImageOptions& options) {
  const uint64_t pixels = static_cast<uint64_t>(info.width) * static_cast<uint64_t>(info.height);
  if (pixels <= options.max_pixels) return {};
  return corrupt(std::string(kind) + ": " + std::to_string(info.width) + " x " +
                 std::to_string(info.height) + " pixels are more than the limit of " +
                 std::to_string(options.max_pixels));
}

Status decode_image(Bytes bytes, const ImageOptions& options, ImageSink& sink) {
  HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(bytes));
  if (!options.orient || codec->exif == nullptr) return codec->decode(bytes, options, sink);
  const Orientation how = exif_orientation(codec->exif(bytes));
  if (how.is_upright()) return codec->decode(bytes, options, sink);
  Turner turner(how, sink);
  return codec->decode(bytes, options, turner);
}

bool contains(int width, int height, const Box& region) {
  return region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
         region.x <= width - region.width && region.y <= height - region.height;
}

}  // namespace headrace
