// SPDX-License-Identifier: Apache-2.0
//
// The shuffle of HDF5 and numcodecs: all first bytes of the elements, then all second ones, …
#pragma once

#include "base/bytes.h"

namespace headrace {

// `out` is as long as `in`; what is left over beyond whole elements stays at the end.
void undo_shuffle(Bytes in, MutableBytes out, size_t item);

}  // namespace headrace
