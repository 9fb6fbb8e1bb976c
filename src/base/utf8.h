// SPDX-License-Identifier: Apache-2.0
//
// Whether bytes are text, and letters as bytes.
#pragma once

#include <string>

#include "base/bytes.h"

namespace headrace {

// The offset of the first byte that is not UTF-8 (overlong forms, surrogates and values above
// U+10FFFF are not), or size() when all of it is.
size_t valid_utf8_prefix(Bytes bytes);

// Appends a letter of Unicode, at most U+10FFFF.
void put_utf8(std::string& out, uint32_t letter);

}  // namespace headrace
