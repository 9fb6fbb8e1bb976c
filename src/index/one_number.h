// SPDX-License-Identifier: Apache-2.0
//
// One number of any type as one of another, exactly or not at all where the other is an integer.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/dtype.h"

namespace headrace {

// False where `dtype` cannot hold it; f16 and bf16 are not written.
bool put_number(DType dtype, double number, MutableBytes out);
// The number that lies in `from`; false likewise.
bool convert_number(DType stored, Bytes from, DType dtype, MutableBytes to);
// As an error names it.
std::string number_text(DType stored, Bytes from);

}  // namespace headrace
