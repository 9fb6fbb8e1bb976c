// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers into the same type or a wider one that holds all of them: the loops that feed a
// model its tokens.
#pragma once

#include "base/bytes.h"
#include "base/dtype.h"

namespace headrace {

// Each element of `from` as an element of `to`, which has room for as many.  False, and nothing is
// done, where the types are not one of these: u8, u16, i32, u32 to i64; u8, u16 to i32.
//
// `next`: where as many bytes lie that come after these, or null.  They are fetched meanwhile: the
// loop waits for its stores, and rows that lie anywhere come faster (docs/measurements.md).
bool widen(Bytes from, DType from_type, MutableBytes to, DType to_type,
           const std::byte* next = nullptr);

// memcpy of a row of some KiB that is in no cache, by plain vectors: from 4 KiB on glibc takes
// `rep movsb`, which fetches fewer lines at a time (docs/measurements.md).
void copy_row(Bytes from, MutableBytes to);

}  // namespace headrace
