// SPDX-License-Identifier: Apache-2.0
//
// View: where the pixels of a result come from, before any pixel is touched.
//
//   source ──box──► resampled to size ──window──► ──flips──► result (the window's size)
//
//      ┌──────────────┐        ┌─────────┐
//      │   ┌──────┐   │        │ ┌─────┐ │          window: in coordinates of the resampled
//      │   │ box  │   │  ───►  │ │     │ │  ──►     picture; where it reaches outside of it,
//      │   └──────┘   │        │ └─────┘ │          the result is padding
//      └──────────────┘        └─────────┘
//
// Steps are views of the result before them; compose() folds two into one where the
// pixels stay the same, so that crop, resize, crop and flip cost one pass.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "codec/image.h"

namespace headrace {

enum class Filter : uint8_t { kNearest, kBilinear, kBicubic, kLanczos };

Result<Filter> filter_named(std::string_view name);

// What stands beyond the edge of a picture a b c d:
//   kConstant  . . a b c d . .     kReflect    c b a b c d c b
//   kEdge      a a a b c d d d     kSymmetric  b a a b c d d c
enum class Border : uint8_t { kConstant, kEdge, kReflect, kSymmetric };

Result<Border> border_named(std::string_view name);
// The pixel of [0, extent) that stands at `at`, anywhere; not for kConstant.
int within(int at, int extent, Border border);

struct Padding {
  Border border = Border::kConstant;
  std::array<uint8_t, 4> fill{};  // per channel, for kConstant
  bool operator==(const Padding&) const = default;
};

// Width and height; kVaries (-1) where they are not known before the data.
struct Size {
  int width = 0;
  int height = 0;
  bool operator==(const Size&) const = default;
};

struct View {
  Box box;    // within the source
  Size size;  // of the box after resampling
  Filter filter = Filter::kBilinear;
  Box window;              // of the resampled picture; may reach outside, or lie there
  bool flip = false;       // left and right change places, last
  bool flip_down = false;  // and so do top and bottom
  Padding padding;         // where the window reaches outside

  Size result() const { return {window.width, window.height}; }
  bool resamples() const { return size.width != box.width || size.height != box.height; }
  bool pads() const { return !contains(size.width, size.height, window); }
  bool operator==(const View&) const = default;
};

// The picture as it is, a part of it, the whole of it at another size.
View identity_view(Size source);
View crop_view(Size source, const Box& window);
View resize_view(Size source, Size size, Filter filter);

// `second` seen through `first`, or nothing when that takes two passes: resampling twice, padding
// what a window had cut, or padding in two ways.
std::optional<View> compose(const View& first, const View& second);

}  // namespace headrace
