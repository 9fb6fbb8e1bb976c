// SPDX-License-Identifier: Apache-2.0
//
// The one thing of EXIF that changes pixels: which way up the camera was held.
#pragma once

#include "base/bytes.h"

namespace headrace {

// How the stored picture becomes the one to look at: first transpose, then mirror.
//
//   EXIF  1  2  3  4  5  6  7  8        a pixel (X, Y) to look at is the stored
//   mirror x -  x  x  -  -  -  x  x     (u, v) = transpose ? (Y, X) : (X, Y), with
//   mirror y -  -  y  y  -  y  y  -     x = mirror_x ? W - 1 - u : u, and y likewise
//   transpose -  -  -  -  t  t  t  t
struct Orientation {
  bool mirror_x = false;
  bool mirror_y = false;
  bool transpose = false;
  bool is_upright() const { return !mirror_x && !mirror_y && !transpose; }
  bool operator==(const Orientation&) const = default;
};

// From the TIFF header on.  Upright where there is no such tag, or no sense in it.
Orientation exif_orientation(Bytes tiff);

// The EXIF of a JPEG, from the TIFF header on, or empty.
Bytes exif_of_jpeg(Bytes jpeg);

}  // namespace headrace
