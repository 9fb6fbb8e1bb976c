// SPDX-License-Identifier: Apache-2.0
//
// Changes that look at the pixels around, in place, as torchvision.transforms.v2.functional makes
// them of u8 tensors.
#pragma once

#include "transform/program/pixels.h"

namespace headrace {

// 0 is a little blurred, 1 as it was, 2 sharp.  Pixels at the edge stay; so does alpha.
void adjust_sharpness(const Pixels& pixels, double factor);

// The extents are odd; beyond the edge the picture is mirrored.  Blurs alpha as well.
void gaussian_blur(const Pixels& pixels, Size extents, double sigma);

}  // namespace headrace
