// SPDX-License-Identifier: Apache-2.0
//
// WebP through libwebp: lossy, lossless, with alpha; of an animation the first frame.
//
// Rows below the region are not decoded, columns beside it not converted.  libwebp treats the
// border of a crop like the border of the picture when it upsamples chroma, so it is asked for
// a margin around the region, on even rows and columns; then the region's pixels are those of
// a full decode.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "codec/image.h"
#include "codec/pixels.h"

namespace headrace {
namespace {

constexpr int kMargin = 2;  // one chroma sample: the reach of fancy upsampling

const uint8_t* data_of(Bytes b) {
  return reinterpret_cast<const uint8_t*>(b.data());
}

Status failure(VP8StatusCode code, Bytes bytes) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return exhausted("WebP: out of memory");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return corrupt("WebP: the data ends before the picture does").at(bytes.size());
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return corrupt("WebP: a feature that the format does not have");
    default:
      return corrupt("WebP: damaged data");
  }
}

// RAII for libwebp's reader of containers.
class Container {
 public:
  explicit Container(Bytes bytes) {
    const WebPData data{data_of(bytes), bytes.size()};
    demux_.reset(WebPDemux(&data));
  }
  bool ok() const { return demux_ != nullptr; }
  // The bytes of a chunk, or empty; they lie within the picture's.
  Bytes chunk(const char (&name)[5]) const {
    WebPChunkIterator it{};
    Bytes out;
    if (ok() && WebPDemuxGetChunk(demux_.get(), name, 1, &it) != 0)
      out = std::as_bytes(std::span(it.chunk.bytes, it.chunk.size));
    WebPDemuxReleaseChunkIterator(&it);
    return out;
  }
  // The first frame: its bytes are a picture by themselves.
  bool first_frame(Bytes& bytes, Box& place) const {
    WebPIterator it{};
    const bool found = ok() && WebPDemuxGetFrame(demux_.get(), 1, &it) != 0 && it.complete != 0;
    if (found) {
      bytes = std::as_bytes(std::span(it.fragment.bytes, it.fragment.size));
      place = {it.x_offset, it.y_offset, it.width, it.height};
    }
    WebPDemuxReleaseIterator(&it);
    return found;
  }

 private:
  struct Delete {
    void operator()(WebPDemuxer* d) const { WebPDemuxDelete(d); }
  };
  std::unique_ptr<WebPDemuxer, Delete> demux_;
};

// Gray is made of colours.
PixelMode decoded_mode(PixelMode mode) {
  return mode == PixelMode::kGray ? PixelMode::kRgb : mode;
}

// Decodes `part` of a still picture to `out`.
Status decode_part(Bytes bytes, const Box& part, PixelMode mode, uint8_t* out, size_t stride) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return internal("WebP: another libwebp than compiled");
  config.options.use_cropping = 1;
  config.options.crop_left = part.x;
  config.options.crop_top = part.y;
  config.options.crop_width = part.width;
  config.options.crop_height = part.height;
  config.output.colorspace = mode == PixelMode::kRgba ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = out;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = stride * static_cast<size_t>(part.height);
  const VP8StatusCode code = WebPDecode(data_of(bytes), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return code == VP8_STATUS_OK ? Status() : failure(code, bytes);
}

int even_below(int v) {
  return std::max(0, v - kMargin) & ~1;
}
int even_above(int v, int limit) {
  return std::min(limit, (v + kMargin + 1) & ~1);
}

// One picture.  One thread at a time.
class Session {
 public:
  explicit Session(Bytes bytes) : bytes_(bytes) {}

  Result<ImageInfo> open() {
    WebPBitstreamFeatures features;
    const VP8StatusCode code = WebPGetFeatures(data_of(bytes_), bytes_.size(), &features);
    if (code != VP8_STATUS_OK) return failure(code, bytes_);
    is_animated_ = features.has_animation != 0;
    info_ = {features.width, features.height, features.has_alpha != 0 ? 4 : 3};
    return info_;
  }

  Status decode(const ImageOptions& options, ImageSink& sink) {
    HEADRACE_TRY(check_size("WebP", info_, options));
    HEADRACE_ASSIGN(const ImageRequest request, sink.begin(info_));
    if (request.shrink != 1) return internal("WebP: shrink is 1");
    if (request.mode == PixelMode::kNumbers) return not_numbers("WebP");
    if (!contains(info_.width, info_.height, request.region))
      return internal("WebP: the region lies outside the picture");
    HEADRACE_TRY(is_animated_ ? read_first_frame(request) : read_part(bytes_, request));
    return give(request, sink);
  }

 private:
  // Memory for `held`, and how its rows lie.
  void reserve(const Box& held, PixelMode mode) {
    held_ = held;
    pixel_ = static_cast<size_t>(channels_of(decoded_mode(mode)));
    stride_ = static_cast<size_t>(held.width) * pixel_;
    pixels_.resize(stride_ * static_cast<size_t>(held.height) + kRowSlack);
  }
  uint8_t* at(int x, int y) {
    return reinterpret_cast<uint8_t*>(pixels_.data()) + static_cast<size_t>(y - held_.y) * stride_ +
           static_cast<size_t>(x - held_.x) * pixel_;
  }

  Status read_part(Bytes bytes, const ImageRequest& request) {
    const Box& want = request.region;
    const int x = even_below(want.x);
    const int y = even_below(want.y);
    reserve({x, y, even_above(want.x + want.width, info_.width) - x,
             even_above(want.y + want.height, info_.height) - y},
            request.mode);
    return decode_part(bytes, held_, decoded_mode(request.mode), at(x, y), stride_);
  }

  // What the frame leaves free of the canvas is transparent black, as Pillow has it.
  Status read_first_frame(const ImageRequest& request) {
    const Container container(bytes_);
    Bytes frame;
    Box place;
    if (!container.first_frame(frame, place)) return failure(VP8_STATUS_SUSPENDED, bytes_);
    const Box canvas{0, 0, info_.width, info_.height};
    if (place == canvas) return read_part(frame, request);
    if (!contains(info_.width, info_.height, place))
      return corrupt("WebP: the first frame lies outside the picture");
    reserve(canvas, request.mode);
    std::memset(pixels_.data(), 0, pixels_.size());
    return decode_part(frame, {0, 0, place.width, place.height}, decoded_mode(request.mode),
                       at(place.x, place.y), stride_);
  }

  Status give(const ImageRequest& request, ImageSink& sink) {
    const Box& want = request.region;
    if (request.mode == PixelMode::kGray)
      for (int y = want.y; y < want.y + want.height; ++y)
        rgb_to_gray(at(want.x, y), at(want.x, y), want.width);
    return sink.rows({at(want.x, want.y), stride_, want.height});
  }

  const Bytes bytes_;
  ImageInfo info_;
  bool is_animated_ = false;
  Box held_;  // the part of the picture that pixels_ holds
  size_t pixel_ = 0;
  size_t stride_ = 0;
  Buffer pixels_;
};

bool sniff(Bytes head) {
  const std::string_view text = as_text(head);
  return text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP";
}

Result<ImageInfo> probe(Bytes bytes) {
  return Session(bytes).open();
}

Status decode(Bytes bytes, const ImageOptions& options, ImageSink& sink) {
  Session session(bytes);
  HEADRACE_TRY(session.open().status());
  return session.decode(options, sink);
}

Bytes exif(Bytes bytes) {
  return Container(bytes).chunk("EXIF");
}

}  // namespace

extern constinit const ImageCodec webp_codec{
    .name = "webp",
    .doc = "WebP, lossy, lossless, alpha; the first frame of an animation",
    .library = "libwebp",
    .sniff = sniff,
    .probe = probe,
    .decode = decode,
    .exif = exif,
};

}  // namespace headrace
