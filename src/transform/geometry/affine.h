// SPDX-License-Identifier: Apache-2.0
//
// Affine: where a point of a picture goes.  Points are continuous: a picture of width w reaches
// from 0 to w, and the middle of its first pixel is 0.5.
#pragma once

#include "transform/geometry/geometry.h"

namespace headrace {

struct Point {
  double x = 0;
  double y = 0;
};

// (x, y) goes to (xx·x + xy·y + x0, yx·x + yy·y + y0).
struct Affine {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;

  Point operator()(Point p) const { return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0}; }
  // This one first, `next` after it.
  Affine then(const Affine& next) const {
    const Point origin = next({x0, y0});
    return {next.xx * xx + next.xy * yx, next.xx * xy + next.xy * yy, origin.x,
            next.yx * xx + next.yy * yx, next.yx * xy + next.yy * yy, origin.y};
  }
};

// Where a view puts the points of its source.
inline Affine affine_of(const View& view) {
  const double sx = static_cast<double>(view.size.width) / view.box.width;
  const double sy = static_cast<double>(view.size.height) / view.box.height;
  Affine a{sx, 0, -sx * view.box.x - view.window.x, 0, sy, -sy * view.box.y - view.window.y};
  if (view.flip) a = a.then({-1, 0, static_cast<double>(view.window.width), 0, 1, 0});
  if (view.flip_down) a = a.then({1, 0, 0, 0, -1, static_cast<double>(view.window.height)});
  return a;
}

}  // namespace headrace
