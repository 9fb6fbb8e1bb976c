// SPDX-License-Identifier: Apache-2.0
//
// random_grayscale: gray with probability `p`, in as many channels as before.
#include "transform/colour/colour.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.1);
  HEADRACE_TRY(params.done());
  return sometimes(p, [](const Pixels& pixels) { make_gray(pixels); });
}

}  // namespace

extern constinit const TransformEntry random_grayscale_transform{
    "random_grayscale", R"(Gray with probability ``p``, in as many channels as before.)", make};

}  // namespace headrace
