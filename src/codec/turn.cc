// SPDX-License-Identifier: Apache-2.0
#include "codec/turn.h"

#include <cstring>
#include <utility>

namespace headrace {
namespace {

Box transposed(const Box& b) {
  return {b.y, b.x, b.height, b.width};
}

}  // namespace

Result<ImageRequest> Turner::begin(const ImageInfo& stored) {
  ImageInfo info = stored;
  info.can_shrink = false;  // pixels at the right and lower edges stand for less than they should
  if (how_.transpose) std::swap(info.width, info.height);
  HEADRACE_ASSIGN(upright_, sink_.begin(info));
  const int shrink = upright_.shrink;
  const int width = (stored.width + shrink - 1) / shrink;
  const int height = (stored.height + shrink - 1) / shrink;
  part_ = how_.transpose ? transposed(upright_.region) : upright_.region;
  if (how_.mirror_x) part_.x = width - part_.x - part_.width;
  if (how_.mirror_y) part_.y = height - part_.y - part_.height;
  if (!contains(width, height, part_)) return internal("the region lies outside the picture");
  pixels_.resize(static_cast<size_t>(part_.width) * static_cast<size_t>(part_.height) *
                 static_cast<size_t>(channels_of(upright_.mode)));
  taken_ = 0;
  return ImageRequest{part_, upright_.mode, shrink};
}

Status Turner::rows(const Rows& rows) {
  const size_t bytes =
      static_cast<size_t>(part_.width) * static_cast<size_t>(channels_of(upright_.mode));
  if (rows.count > part_.height - taken_) return internal("more rows than the region has");
  for (int r = 0; r < rows.count; ++r, ++taken_)
    std::memcpy(pixels_.data() + static_cast<size_t>(taken_) * bytes,
                rows.first + static_cast<size_t>(r) * rows.stride, bytes);
  return taken_ == part_.height ? give() : Status();
}

Status Turner::give() {
  const auto pixel = static_cast<size_t>(channels_of(upright_.mode));
  const auto width = static_cast<size_t>(upright_.region.width);
  const auto height = static_cast<size_t>(upright_.region.height);
  const size_t stored_row = static_cast<size_t>(part_.width) * pixel;
  // What one step right, and one step down, mean in the stored picture.
  const auto dx = static_cast<ptrdiff_t>(pixel) * (how_.mirror_x ? -1 : 1);
  const auto dy = static_cast<ptrdiff_t>(stored_row) * (how_.mirror_y ? -1 : 1);
  const ptrdiff_t right = how_.transpose ? dy : dx;
  const ptrdiff_t down = how_.transpose ? dx : dy;
  const std::byte* corner =
      pixels_.data() + (how_.mirror_x ? stored_row - pixel : 0) +
      (how_.mirror_y ? static_cast<size_t>(part_.height - 1) * stored_row : 0);
  Buffer turned(width * height * pixel + kRowSlack);
  std::byte* to = turned.data();
  for (size_t y = 0; y < height; ++y) {
    const std::byte* from = corner + static_cast<ptrdiff_t>(y) * down;
    for (size_t x = 0; x < width; ++x, from += right, to += pixel) std::memcpy(to, from, pixel);
  }
  return sink_.rows(
      {reinterpret_cast<const uint8_t*>(turned.data()), width * pixel, upright_.region.height});
}

}  // namespace headrace
