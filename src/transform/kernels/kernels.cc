// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/kernels.h"

namespace headrace {

const Kernels& vector_kernels() {
  static const Kernels kernels = [] {
    Kernels k = scalar_kernels();
    use_vector_across(k);
    use_vector_down(k);
    use_vector_stores(k);
    return k;
  }();
  return kernels;
}

}  // namespace headrace
