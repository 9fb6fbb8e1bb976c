// SPDX-License-Identifier: Apache-2.0
//
// random_solarize: with probability `p`, levels from `threshold` on are inverted.
#include "transform/colour/colour.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const auto thresholds = params.need_numbers("threshold");
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  if (thresholds.size() != 1 || !(thresholds[0] >= 0 && thresholds[0] <= 255))
    return invalid("parameter 'threshold' must be a level from 0 to 255");
  return sometimes(p, [t = thresholds[0]](const Pixels& pixels) { solarize(pixels, t); });
}

}  // namespace

extern constinit const TransformEntry random_solarize_transform{
    "random_solarize",
    R"(With probability ``p`` levels from ``threshold`` on become 255 minus themselves.)", make};

}  // namespace headrace
