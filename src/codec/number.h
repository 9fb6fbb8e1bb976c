// SPDX-License-Identifier: Apache-2.0
//
// Numbers: decimal text with white space around it, or the eight bytes that an
// index keeps inline.
#pragma once

#include <memory>

#include "codec/decoder.h"

namespace headrace {

// How the bytes of a number are stored.
enum class NumberForm : uint8_t { kText, kInt64, kFloat64 };

// Decoder of one number into an element of `dtype`: i8 to u64, f32 or f64.  A number that the
// type cannot hold, a fraction for an integer type among them, is kCorrupt.
Result<std::unique_ptr<Decoder>> make_number_decoder(NumberForm form, DType dtype);

}  // namespace headrace
