// SPDX-License-Identifier: Apache-2.0
//
// Whether bytes are text.
#pragma once

#include "base/bytes.h"

namespace headrace {

// The offset of the first byte that is not UTF-8 (overlong forms, surrogates and values above
// U+10FFFF are not), or size() when all of it is.
size_t valid_utf8_prefix(Bytes bytes);

}  // namespace headrace
