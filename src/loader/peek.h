// SPDX-License-Identifier: Apache-2.0
//
// What only the data can tell before it moves: the type and shape of .npy values, from the
// header of the first one.
#pragma once

#include "codec/array.h"
#include "index/source.h"

namespace headrace {

// Of the first sample, out of the first 64, that has a good value of the field.  Reads its
// header alone where that can be.
Result<StoredArray> first_npy(const Source& source, uint32_t field);

}  // namespace headrace
