// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry/geometry.h"

#include <string>

namespace headrace {
namespace {

Box whole(Size size) {
  return {0, 0, size.width, size.height};
}

Box moved(const Box& box, int dx, int dy) {
  return {box.x + dx, box.y + dy, box.width, box.height};
}

// The same pixels counted from the other sides, as the view flips, of a picture of this size.
Box mirrored(Box box, Size size, const View& view) {
  if (view.flip) box.x = size.width - box.x - box.width;
  if (view.flip_down) box.y = size.height - box.y - box.height;
  return box;
}

// Everything of the resampled picture can be seen in the result.
bool shows_all(const View& v) {
  return v.window.x <= 0 && v.window.y <= 0 && v.window.x + v.window.width >= v.size.width &&
         v.window.y + v.window.height >= v.size.height;
}

View then_crop(const View& first, const View& second) {
  const Box cut = mirrored(moved(second.window, second.box.x, second.box.y), first.result(), first);
  View out = first;
  out.window = moved(cut, first.window.x, first.window.y);
  out.flip = first.flip != second.flip;
  out.flip_down = first.flip_down != second.flip_down;
  if (second.pads()) out.padding = second.padding;
  return out;
}

// Resampling and mirroring change places: the filters are symmetric.
View then_resample(const View& first, const View& second) {
  View out = second;
  out.box = mirrored(second.box, first.result(), first);
  out.window = mirrored(second.window, second.size, first);
  out.box = moved(out.box, first.box.x + first.window.x, first.box.y + first.window.y);
  out.flip = first.flip != second.flip;
  out.flip_down = first.flip_down != second.flip_down;
  return out;
}

}  // namespace

Result<Filter> filter_named(std::string_view name) {
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "bicubic") return Filter::kBicubic;
  if (name == "nearest") return Filter::kNearest;
  if (name == "lanczos") return Filter::kLanczos;
  return invalid("no filter '" + std::string(name) +
                 "'; there are nearest, bilinear, bicubic, lanczos");
}

Result<Border> border_named(std::string_view name) {
  if (name == "constant") return Border::kConstant;
  if (name == "edge") return Border::kEdge;
  if (name == "reflect") return Border::kReflect;
  if (name == "symmetric") return Border::kSymmetric;
  return invalid("no padding_mode '" + std::string(name) +
                 "'; there are constant, edge, reflect, symmetric");
}

int within(int at, int extent, Border border) {
  if (at >= 0 && at < extent) return at;
  if (border == Border::kEdge || extent == 1) return at < 0 ? 0 : extent - 1;
  // There and back again: the second half of a period is the first one mirrored.
  const int edge = border == Border::kReflect ? 1 : 0;
  const int period = 2 * (extent - edge);
  at %= period;
  if (at < 0) at += period;
  return at < extent ? at : period - at - 1 + edge;
}

View identity_view(Size source) {
  return crop_view(source, whole(source));
}

View crop_view(Size source, const Box& window) {
  return {.box = whole(source), .size = source, .window = window};
}

View resize_view(Size source, Size size, Filter filter) {
  return {.box = whole(source), .size = size, .filter = filter, .window = whole(size)};
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
  const bool alike = first.padding == second.padding && first.padding.border == Border::kConstant;
  if (first.pads() && second.pads() && !alike) return std::nullopt;
  return then_crop(first, second);
}

}  // namespace headrace
