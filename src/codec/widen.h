// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers into a wider type that holds all of them: the loop that feeds a model its tokens.
#pragma once

#include "base/bytes.h"
#include "base/dtype.h"

namespace headrace {

// Each element of `from` as an element of `to`, which has room for as many.  False, and nothing is
// done, where the types are not one of these: u8, u16, i32, u32 to i64; u8, u16 to i32.
bool widen(Bytes from, DType from_type, MutableBytes to, DType to_type);

}  // namespace headrace
