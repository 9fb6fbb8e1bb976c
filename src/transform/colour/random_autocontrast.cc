// SPDX-License-Identifier: Apache-2.0
//
// random_autocontrast: with probability `p` each colour is stretched from its darkest and lightest
// level to 0 and 255.
#include "transform/colour/colour.h"
#include "transform/colour/sometimes.h"

namespace headrace {
namespace {

Result<Transform> make(Params params) {
  const double p = params.take_number("p", 0.5);
  HEADRACE_TRY(params.done());
  return sometimes(p, [](const Pixels& pixels) { autocontrast(pixels); });
}

}  // namespace

extern constinit const TransformEntry random_autocontrast_transform{
    "random_autocontrast",
    R"(With probability ``p`` each colour is stretched from its darkest and lightest to 0 and 255.)",
    make};

}  // namespace headrace
