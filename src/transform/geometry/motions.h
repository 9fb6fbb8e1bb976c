// SPDX-License-Identifier: Apache-2.0
//
// What random_rotation and random_affine share: the center, the sampling, the colour around.
#pragma once

#include <string>
#include <vector>

#include "transform/geometry/motion.h"
#include "transform/params.h"

namespace headrace {

struct Motions {
  Sampling sampling;
  std::vector<double> center;  // x, y in pixels from the upper left; empty: the middle

  // No motion yet, about the center of a picture of this size.
  Motion around(Size size) const;
  Status check_channels(int channels) const {
    return sampling.fill.value_or(Colour{}).check_channels(channels, "fill");
  }

  // Takes "interpolation", "fill" and "center"; checked() after the parameters are done().
  class Given {
   public:
    explicit Given(Params& params)
        : interpolation_(params.take_text("interpolation", "nearest")),
          fill_(params.take_numbers("fill", {0})),
          center_(params.take_numbers("center", {})) {}
    Result<Motions> checked() const;

   private:
    const std::string interpolation_;
    const std::vector<double> fill_;
    const std::vector<double> center_;
  };
};

// Rotations go the other way than the angle of an affine motion, as torchvision's do.
Motion turned(double degrees, Motion about);

}  // namespace headrace
