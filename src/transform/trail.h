// SPDX-License-Identifier: Apache-2.0
//
// Trail: what the steps did to the picture of a joint, for the boxes and points that follow
// it.  The fields of a sample are decoded one after the other by one thread, the picture
// first, so the trail is that thread's own.
#pragma once

#include "base/rng.h"
#include "base/status.h"
#include "transform/affine.h"

namespace headrace {

struct Trail {
  Key draws{0};  // the sample's, with the name of the joint: whose trail this is
  Size source;
  Size result;
  Affine map;  // from the source to the result
};

Trail& this_threads_trail();
// The trail that the picture of this sample and joint left.
Result<const Trail*> find_trail(Key draws);

}  // namespace headrace
