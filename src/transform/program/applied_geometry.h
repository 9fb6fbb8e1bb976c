// SPDX-License-Identifier: Apache-2.0
//
// AppliedGeometry: what the steps did to the picture of a joint, for the boxes and points that
// follow it.  The fields of a sample are decoded one after the other by one thread, the picture
// first, so the record is that thread's own.
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "transform/geometry/affine.h"

namespace headrace {

struct AppliedGeometry {
  Key draws{0};  // the sample's, with the name of the joint: whose record this is
  Size source;
  Size result;
  Affine map;  // from the source to the result
};

AppliedGeometry& this_threads_geometry();
// What the picture of this sample and joint left.
Result<const AppliedGeometry*> find_geometry(Key draws);

}  // namespace headrace
