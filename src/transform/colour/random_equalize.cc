// SPDX-License-Identifier: Apache-2.0
//
// random_equalize: with probability `p` each colour is mapped so that its levels are equally
// frequent.
#include "transform/colour/colour.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  return sometimes(p, [](const Pixels& pixels) { equalize(pixels); });
}

}  // namespace

extern constinit const TransformEntry random_equalize_transform{
    "random_equalize",
    R"(With probability ``p`` the levels of each colour become equally frequent.)", make};

}  // namespace headrace
