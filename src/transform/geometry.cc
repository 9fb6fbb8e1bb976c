// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry.h"

#include <string>

namespace headrace {
namespace {

Box whole(Size size) {
  return {0, 0, size.width, size.height};
}

Box moved(const Box& box, int dx, int dy) {
  return {box.x + dx, box.y + dy, box.width, box.height};
}

// The same pixels counted from the other side of a picture of this width.
Box mirrored(const Box& box, int width) {
  return {width - box.x - box.width, box.y, box.width, box.height};
}

// Everything of the resampled picture can be seen in the result.
bool shows_all(const View& v) {
  return v.window.x <= 0 && v.window.y <= 0 && v.window.x + v.window.width >= v.size.width &&
         v.window.y + v.window.height >= v.size.height;
}

// Something of the resampled picture can be seen in the result.
bool shows_some(const View& v) {
  return v.window.x < v.size.width && v.window.y < v.size.height &&
         v.window.x + v.window.width > 0 && v.window.y + v.window.height > 0;
}

View then_crop(const View& first, const View& second) {
  Box cut = moved(second.window, second.box.x, second.box.y);
  if (first.flip) cut = mirrored(cut, first.window.width);
  View out = first;
  out.window = moved(cut, first.window.x, first.window.y);
  out.flip = first.flip != second.flip;
  return out;
}

// Resampling and mirroring change places: the filters are symmetric.
View then_resample(const View& first, const View& second) {
  View out = second;
  if (first.flip) {
    out.box = mirrored(second.box, first.window.width);
    out.window = mirrored(second.window, second.size.width);
  }
  out.box = moved(out.box, first.box.x + first.window.x, first.box.y + first.window.y);
  out.flip = first.flip != second.flip;
  return out;
}

}  // namespace

Result<Filter> filter_named(std::string_view name) {
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "bicubic") return Filter::kBicubic;
  if (name == "nearest") return Filter::kNearest;
  return invalid("no filter '" + std::string(name) + "'; there are nearest, bilinear, bicubic");
}

View identity_view(Size source) {
  return crop_view(source, whole(source));
}

View crop_view(Size source, const Box& window) {
  return {whole(source), source, Filter::kBilinear, window, false};
}

View resize_view(Size source, Size size, Filter filter) {
  return {whole(source), size, filter, whole(size), false};
}

std::optional<View> compose(const View& first, const View& second) {
  const Size seen = first.result();
  if (second.resamples()) {
    if (first.resamples() || first.pads()) return std::nullopt;
    return then_resample(first, second);
  }
  // A part of a box that is itself a part: its window is cut at the box, not at the picture.
  const bool inside = !second.pads() && contains(seen.width, seen.height, second.box);
  const bool everything = second.box == whole(seen) && shows_all(first);
  if (!inside && !everything) return std::nullopt;
  const View cropped = then_crop(first, second);
  if (!shows_some(cropped)) return std::nullopt;
  return cropped;
}

}  // namespace headrace
