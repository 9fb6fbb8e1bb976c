// SPDX-License-Identifier: Apache-2.0
//
// Elements after they were gathered: byte order, NetCDF's packed numbers, texts of fixed length.
#pragma once

#include <span>

#include "array/array_source.h"

namespace headrace {

// What packed numbers become: f32 where the stored have at most 16 bits or are f32, else f64.
DType unpacked_dtype(DType stored);

void swap_bytes(std::span<std::byte> elements, size_t item);
// stored * scale + offset, NaN where missing, as numbers of type `to`: f32 or f64.  `out` has room
// for exactly as many.
void unpack_numbers(const Array& array, Bytes stored, DType to, MutableBytes out);
// kInvalidArgument where a 64-bit integer is no number that f64 has.
Status check_exact(const Array& array, Bytes stored);
// The text without what fills it up.
Bytes end_text(TextEnd end, Bytes text);

}  // namespace headrace
