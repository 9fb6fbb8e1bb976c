// SPDX-License-Identifier: Apache-2.0
#include "transform/geometry/padding.h"

namespace headrace {

Result<Sides> sides_from(const std::vector<int>& v) {
  for (const int side : v)
    if (side < 0 || side > 65536) return invalid("parameter 'padding' must be from 0 to 65536");
  if (v.size() == 1) return Sides{v[0], v[0], v[0], v[0]};
  if (v.size() == 2) return Sides{v[0], v[1], v[0], v[1]};
  if (v.size() == 4) return Sides{v[0], v[1], v[2], v[3]};
  return invalid(
      "parameter 'padding' must be one number, (left and right, top and bottom) or (left, top, "
      "right, bottom)");
}

Result<Filling> Filling::Given::checked() const {
  Filling out;
  HEADRACE_ASSIGN(out.fill, colour_from(fill_, "fill"));
  HEADRACE_ASSIGN(out.padding.border, border_named(mode_));
  out.padding.fill = out.fill.bytes();
  return out;
}

}  // namespace headrace
