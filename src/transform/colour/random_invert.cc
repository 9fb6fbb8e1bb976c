// SPDX-License-Identifier: Apache-2.0
//
// random_invert: 255 minus each level, with probability `p`.
#include "transform/colour/colour.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  return sometimes(p, [](const Pixels& pixels) { invert(pixels); });
}

}  // namespace

extern constinit const TransformEntry random_invert_transform{
    "random_invert", R"(With probability ``p`` every level becomes 255 minus itself.)", make};

}  // namespace headrace
