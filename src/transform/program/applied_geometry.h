// SPDX-License-Identifier: Apache-2.0
//
// AppliedGeometry: what the steps did to the picture of a joint, for the boxes and points that
// follow it.  A part of the sample's context: the picture's decoder leaves it there.
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "codec/sample_context.h"
#include "transform/geometry/affine.h"

namespace headrace {

struct AppliedGeometry {
  Key draws{0};  // the sample's, with the name of the joint: whose record this is
  Size source;
  Size result;
  Affine map;  // from the source to the result
  bool is_set = false;

  void begin_sample() { is_set = false; }
};

// What the picture of this joint left; `draws` are the sample's, with the name of the joint.
Result<const AppliedGeometry*> find_geometry(SampleContext& context, Key draws);
// Whether a picture that follows is as large as the one that leads: the draws of a joint mean the
// same for pictures of one size alone.
Status check_joint(SampleContext& context, Key draws, Size size);

}  // namespace headrace
