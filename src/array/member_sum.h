// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "array/array_source.h"
#include "base/bytes.h"

namespace headrace {

// Whether the chunk, all of it and opened, is what the zip says its member is; the error names the
// member.  Precondition: the array has a sum.
Status check_sum(const Array& array, Bytes chunk);

}  // namespace headrace
