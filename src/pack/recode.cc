// SPDX-License-Identifier: Apache-2.0
#include "pack/recode.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/encode.h"
#include "codec/image.h"
#include "transform/kernels/resample.h"

namespace headrace {
namespace {

constexpr int kQuality = 90;
constexpr int kMostSide = 65535;  // JPEG's

// Four channels are alpha, but for a JPEG, where they are CMYK.
PixelMode mode_of(const ImageInfo& info, bool is_jpeg) {
  if (info.channels == 1) return PixelMode::kGray;
  const bool has_alpha = info.channels == 2 || (info.channels == 4 && !is_jpeg);
  return has_alpha ? PixelMode::kRgba : PixelMode::kRgb;
}

// What it was, or what can hold it: pictures of other kinds are read too.
std::string_view encoder_for(std::string_view codec, PixelMode mode) {
  for (const ImageEncoder* encoder : all_image_encoders())
    if (encoder->name == codec) return codec;
  return mode == PixelMode::kRgba ? "png" : "jpeg";
}

// The longer side at most `side`, the other in proportion, to the nearest.
Size fitted(Size size, int side) {
  const int longer = std::max(size.width, size.height);
  if (side == 0 || longer <= side) return size;
  const auto scaled = [&](int n) {
    return static_cast<int>(std::max<int64_t>(1, (int64_t{n} * side + longer / 2) / longer));
  };
  return {scaled(size.width), scaled(size.height)};
}

// Decodes into memory, through the resampler where the picture is too large.
class FitSink final : public ImageSink {
 public:
  FitSink(int max_side, PixelMode as, Resampler& resampler, Buffer& pixels)
      : mode(as), max_side_(max_side), resampler_(resampler), pixels_(pixels) {}

  Result<ImageRequest> begin(const ImageInfo& info) override {
    const Size source{info.width, info.height};
    size = fitted(source, max_side_);
    const int channels = channels_of(mode);
    pixels_.resize(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
                   static_cast<size_t>(channels));
    // Bicubic, as Pillow's thumbnail() does it.
    const View view =
        size == source ? identity_view(source) : resize_view(source, size, Filter::kBicubic);
    const Box region =
        resampler_.begin(view, 1, channels, PixelOutput{.layout = Layout::kNHWC}, pixels_.span());
    return ImageRequest{region, mode, 1};
  }
  Status rows(const Rows& rows) override {
    resampler_.rows(rows);
    return {};
  }

  Size size;
  const PixelMode mode;

 private:
  const int max_side_;
  Resampler& resampler_;
  Buffer& pixels_;
};

struct Scratch {
  Resampler resampler;
  Buffer pixels;
};

Scratch& this_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

void append(std::vector<std::byte>& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Version 1.0: magic, version, length of the header (so that the data are aligned to 64), header.
void append_npy(const FitSink& picture, Bytes pixels, std::vector<std::byte>& out) {
  std::string header =
      fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}, {}), }}",
                  picture.size.height, picture.size.width, channels_of(picture.mode));
  constexpr size_t kBefore = 10;
  header.append((64 - (kBefore + header.size() + 1) % 64) % 64, ' ').append(1, '\n');
  append(out, as_bytes(std::string_view("\x93NUMPY\x01\x00", 8)));
  const std::byte length[] = {static_cast<std::byte>(header.size() & 0xff),
                              static_cast<std::byte>(header.size() >> 8)};
  append(out, length);
  append(out, as_bytes(header));
  append(out, pixels);
}

}  // namespace

Status validate(const RecodeOptions& options) {
  if (options.max_side < 0 || options.max_side > kMostSide)
    return invalid(fmt::format("max_side is from 1 to {}, not {}", kMostSide, options.max_side));
  if (options.quality < 0 || options.quality > 100)
    return invalid(fmt::format("quality is from 1 to 100, not {}", options.quality));
  if (options.raw && options.quality != 0)
    return invalid("raw pixels have no quality: give one of the two");
  return {};
}

Status recode(const RecodeOptions& options, Bytes picture, std::vector<std::byte>& out) {
  HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(picture));
  const bool is_jpeg = codec->name == "jpeg";
  HEADRACE_ASSIGN(const ImageInfo info, codec->probe(picture));
  const bool too_large =
      options.max_side != 0 && std::max(info.width, info.height) > options.max_side;
  if (!too_large && !options.raw && !(is_jpeg && options.quality != 0)) {
    append(out, picture);
    return {};
  }
  Scratch& scratch = this_thread();
  FitSink sink(options.max_side, mode_of(info, is_jpeg), scratch.resampler, scratch.pixels);
  HEADRACE_TRY(decode_image(picture, {.orient = options.orient}, sink));
  if (options.raw) {
    append_npy(sink, scratch.pixels.bytes(), out);
    return {};
  }
  HEADRACE_ASSIGN(const ImageEncoder* encoder,
                  find_image_encoder(encoder_for(codec->name, sink.mode)));
  const Picture pixels{.pixels = reinterpret_cast<const uint8_t*>(scratch.pixels.data()),
                       .width = sink.size.width,
                       .height = sink.size.height,
                       .mode = sink.mode};
  HEADRACE_ASSIGN(
      const Buffer encoded,
      encoder->encode(pixels, {.quality = options.quality != 0 ? options.quality : kQuality}));
  append(out, encoded.bytes());
  return {};
}

}  // namespace headrace
