// SPDX-License-Identifier: Apache-2.0
#include "codec/raw_picture.h"

#include <algorithm>
#include <limits>

#include "base/buffer.h"
#include "codec/array.h"
#include "codec/elements.h"
#include "codec/pixels.h"

namespace headrace {
namespace {

constexpr std::string_view kName = "array";
constexpr int64_t kMostSide = std::numeric_limits<int>::max();

bool is_channels(int64_t n) {
  return n == 1 || n == 3 || n == 4;
}

// One row as pixels next to each other, from pixels or from planes.
void take_row(const uint8_t* from, const RawLayout& layout, bool planar, size_t y, uint8_t* to) {
  const auto width = static_cast<size_t>(layout.width);
  const auto channels = static_cast<size_t>(layout.channels);
  if (!planar) {
    std::copy_n(from + y * width * channels, width * channels, to);
    return;
  }
  const size_t plane = width * static_cast<size_t>(layout.height);
  for (size_t c = 0; c < channels; ++c)
    for (size_t x = 0; x < width; ++x) to[x * channels + c] = from[c * plane + y * width + x];
}

// What Pillow's convert() makes of a row, in place; `row` has room for four bytes a pixel.
void convert_row(uint8_t* row, int width, int channels, PixelMode mode) {
  const int wanted = channels_of(mode);
  if (wanted == channels) return;
  if (channels == 4)  // the alpha goes
    for (int x = 0; x < width; ++x) std::copy_n(row + 4 * x, 3, row + 3 * x);
  if (channels == 1)
    for (int x = width - 1; x >= 0; --x) std::fill_n(row + 3 * x, 3, uint8_t{row[x]});
  if (wanted == 1) rgb_to_gray(row, row, width);
  if (wanted == 4) rgb_to_rgba(row, row, width);
}

}  // namespace

Result<RawLayout> raw_layout(const std::vector<int64_t>& shape, bool channels_first) {
  RawLayout out;
  if (shape.size() == 2) {
    out = {shape[1], shape[0], 1};
  } else if (shape.size() == 3 && is_channels(channels_first ? shape[0] : shape[2])) {
    out = channels_first ? RawLayout{shape[2], shape[1], static_cast<int>(shape[0])}
                         : RawLayout{shape[1], shape[0], static_cast<int>(shape[2])};
  } else {
    const bool turned = shape.size() == 3 && is_channels(channels_first ? shape[2] : shape[0]);
    return invalid("an array of shape " + shape_text(shape) +
                   " is no picture: (h, w), or (h, w, c) with 1, 3 or 4 channels" +
                   (turned ? (channels_first ? "; leave layout=\"CHW\" out"
                                             : "; say layout=\"CHW\" where the channels come first")
                           : ""));
  }
  for (const int64_t side : {out.width, out.height})
    if (side == 0 || side > kMostSide)
      return invalid("an array of shape " + shape_text(shape) + " is no picture");
  return out;
}

Status decode_raw(const std::vector<int64_t>& shape, bool channels_first, Bytes pixels,
                  const ImageOptions& options, ImageSink& sink) {
  HEADRACE_ASSIGN(const RawLayout layout, raw_layout(shape, channels_first));
  const ImageInfo info{static_cast<int>(layout.width), static_cast<int>(layout.height),
                       layout.channels};
  HEADRACE_TRY(check_size(kName, info, options));
  HEADRACE_ASSIGN(const ImageRequest request, sink.begin(info));
  if (request.shrink != 1) return internal("array: shrink is 1");
  if (!contains(info.width, info.height, request.region))
    return internal("array: the region lies outside the picture");
  if (request.mode == PixelMode::kNumbers && layout.channels != 1) return not_numbers(kName);
  const auto* from = reinterpret_cast<const uint8_t*>(pixels.data());
  Buffer row(static_cast<size_t>(info.width) * 4 + kRowSlack);
  auto* to = reinterpret_cast<uint8_t*>(row.data());
  const Box& want = request.region;
  const size_t lead = static_cast<size_t>(want.x) * static_cast<size_t>(channels_of(request.mode));
  for (int y = want.y; y < want.y + want.height; ++y) {
    take_row(from, layout, channels_first && shape.size() == 3, static_cast<size_t>(y), to);
    convert_row(to, info.width, layout.channels, request.mode);
    HEADRACE_TRY(sink.rows({to + lead, row.size(), 1}));
  }
  return {};
}

Status decode_npy_picture(Bytes file, bool channels_first, const ImageOptions& options,
                          ImageSink& sink) {
  HEADRACE_ASSIGN(const NpyArray array, open_npy(file, file.size()));
  if (array.dtype != DType::kU8)
    return unsupported(".npy: a picture is u8, this is " + std::string(dtype_name(array.dtype)) +
                       "; hr.array takes it");
  if (array.is_plain())
    return decode_raw(array.shape, channels_first, file.subspan(array.header.data), options, sink);
  Buffer plain(array.header.data_bytes());
  HEADRACE_TRY(array.copy(file, plain.span()));
  return decode_raw(array.shape, channels_first, plain.bytes(), options, sink);
}

}  // namespace headrace
