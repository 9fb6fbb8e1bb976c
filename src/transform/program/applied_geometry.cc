// SPDX-License-Identifier: Apache-2.0
#include "transform/program/applied_geometry.h"

namespace headrace {

AppliedGeometry& this_threads_geometry() {
  static thread_local AppliedGeometry geometry;
  return geometry;
}

Result<const AppliedGeometry*> find_geometry(Key draws) {
  const AppliedGeometry& geometry = this_threads_geometry();
  if (geometry.draws == draws) return &geometry;
  return invalid("it must come after the picture that it is joined with: keep hr.joint's order");
}

}  // namespace headrace
