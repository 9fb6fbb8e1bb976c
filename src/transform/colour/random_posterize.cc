// SPDX-License-Identifier: Apache-2.0
//
// random_posterize: with probability `p`, levels keep their first `bits` bits.
#include "transform/colour/colour.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const auto bits = params.need_integers("bits");
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  if (bits.size() != 1 || bits[0] < 0 || bits[0] > 8)
    return invalid("parameter 'bits' must be from 0 to 8");
  return sometimes(p, [b = bits[0]](const Pixels& pixels) { posterize(pixels, b); });
}

}  // namespace

extern constinit const TransformEntry random_posterize_transform{
    "random_posterize",
    R"(With probability ``p`` only the first ``bits`` bits of each level stay.)", make};

}  // namespace headrace
