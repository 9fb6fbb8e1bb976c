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
// stored * scale + offset, NaN where missing.  `out` has room for exactly as many numbers.
void unpack_numbers(const Array& array, Bytes stored, MutableBytes out);
// The text without what fills it up.
Bytes end_text(TextEnd end, Bytes text);

}  // namespace headrace
