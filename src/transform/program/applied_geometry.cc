// SPDX-License-Identifier: Apache-2.0
#include "transform/program/applied_geometry.h"

#include <string>

namespace headrace {

Result<const AppliedGeometry*> find_geometry(SampleContext& context, Key draws) {
  const AppliedGeometry& geometry = context.part<AppliedGeometry>();
  if (geometry.is_set && geometry.draws == draws) return &geometry;
  return invalid("it must come after the picture that it is joined with: keep hr.joint's order");
}

Status check_joint(SampleContext& context, Key draws, Size size) {
  HEADRACE_ASSIGN(const AppliedGeometry* geometry, find_geometry(context, draws));
  if (geometry->source == size) return {};
  return corrupt("the picture is " + std::to_string(size.width) + "x" +
                 std::to_string(size.height) + ", the one it is joined with " +
                 std::to_string(geometry->source.width) + "x" +
                 std::to_string(geometry->source.height));
}

}  // namespace headrace
