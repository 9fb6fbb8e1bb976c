// SPDX-License-Identifier: Apache-2.0
//
// random_adjust_sharpness: with probability `p` the picture is blurred (factor below 1) or
// sharpened (above 1).
#include <cmath>

#include "transform/colour/neighbours.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const auto factors = params.need_numbers("sharpness_factor");
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  if (factors.size() != 1 || !(factors[0] >= 0 && std::isfinite(factors[0])))
    return invalid("parameter 'sharpness_factor' must be a number from 0 on");
  return sometimes(p, [f = factors[0]](const Pixels& pixels) { adjust_sharpness(pixels, f); });
}

}  // namespace

extern constinit const TransformEntry random_adjust_sharpness_transform{
    "random_adjust_sharpness",
    R"(With probability ``p`` blurred (factor 0) or sharpened (factor above 1).)", make};

}  // namespace headrace
