// SPDX-License-Identifier: Apache-2.0
//
// Marks in the entropy-coded data of a JPEG.
#pragma once

#include "base/bytes.h"

namespace headrace {

// The place of the first byte 0xff, from `at` on, that something other than 0 follows: what codes
// make of 0xff is followed by 0.  The size of `data` where there is none.
size_t find_mark(Bytes data, size_t at);

}  // namespace headrace
