// SPDX-License-Identifier: Apache-2.0
//
// Affine motion of a picture: turned, moved, scaled, sheared; the same size before and after.
// Numbers mean what they mean to torchvision.transforms.v2.functional.affine, and pixels come
// out as its (on u8 tensors): the sampling positions are computed in the same f32 steps.
#pragma once

#include <optional>

#include "transform/geometry/affine.h"
#include "transform/kernels/ranges.h"
#include "transform/program/pixels.h"

namespace headrace {

// In degrees and pixels, clockwise; the center counts from the middle of the picture.
struct Motion {
  double angle = 0;
  double move_x = 0;
  double move_y = 0;
  double scale = 1;
  double shear_x = 0;
  double shear_y = 0;
  double center_x = 0;
  double center_y = 0;
};

Affine matrix_of(const Motion& motion, Size size);

// How a moved picture is sampled.
struct Sampling {
  Filter filter = Filter::kNearest;  // or kBilinear
  // Where nothing of the picture is.  With bilinear sampling torchvision blends towards a colour
  // that was given by the square of the coverage, and towards none (black) by the coverage.
  std::optional<Colour> fill;
};
// "nearest" or "bilinear".
Result<Filter> sampling_named(std::string_view name);

void move_pixels(const Pixels& pixels, const Motion& motion, const Sampling& sampling);

}  // namespace headrace
