// SPDX-License-Identifier: Apache-2.0
//
// Runs of numbers: from one type to another, from one order to another.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/npy.h"
#include "base/status.h"

namespace headrace {

// Each element of `from` as an element of `to`, which has room for as many.  An integer type
// holds the number exactly or it is kCorrupt, with the offset in `from`: too large, a fraction,
// not a number.  Types of floating point take the nearest they have.
Status convert_elements(Bytes from, DType from_type, MutableBytes to, DType to_type);

// The elements behind an .npy header, little-endian, last axis fastest; kCorrupt where there are
// more or fewer bytes than the header says.
Status check_npy_data(const NpyHeader& header, Bytes file);
// Copies them, of a file that was checked.  `to` has header.data_bytes.
void copy_npy_data(const NpyHeader& header, Bytes file, MutableBytes to);
// Whether copy_npy_data() would only copy.
bool is_plain(const NpyHeader& header);

}  // namespace headrace
