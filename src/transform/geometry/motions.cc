// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry/motions.h"

#include <cmath>

namespace headrace {

Motion Motions::around(Size size) const {
  Motion out;
  if (center.empty()) return out;
  out.center_x = center[0] - size.width * 0.5;
  out.center_y = center[1] - size.height * 0.5;
  return out;
}

Result<Motions> Motions::Given::checked() const {
  Motions out;
  HEADRACE_ASSIGN(out.sampling.filter, sampling_named(interpolation_));
  HEADRACE_ASSIGN(out.sampling.fill, colour_from(fill_, "fill"));
  if (!center_.empty() && center_.size() != 2)
    return invalid("parameter 'center' must be (x, y) in pixels");
  for (const double c : center_)
    if (!(std::abs(c) <= 1e6)) return invalid("parameter 'center' must be (x, y) in pixels");
  out.center = center_;
  return out;
}

Motion turned(double degrees, Motion about) {
  double angle = std::fmod(degrees, 360);
  if (angle < 0) angle += 360;
  about.angle = -angle;
  return about;
}

}  // namespace headrace
