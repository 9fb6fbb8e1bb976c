// SPDX-License-Identifier: Apache-2.0
#include "transform/trail.h"

namespace headrace {

Trail& this_threads_trail() {
  static thread_local Trail trail;
  return trail;
}

Result<const Trail*> find_trail(Key draws) {
  const Trail& trail = this_threads_trail();
  if (trail.draws == draws) return &trail;
  return invalid("it must come after the picture that it is joined with: keep hr.joint's order");
}

}  // namespace headrace
