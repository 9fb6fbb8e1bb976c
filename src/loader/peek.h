// SPDX-License-Identifier: Apache-2.0
//
// What only the data can tell before it moves: the type and shape of .npy values, from the
// header of the first one.
#pragma once

#include <string>

#include "codec/array.h"
#include "index/source.h"

namespace headrace {

// The bytes of a value that lies in one piece of a unit that is stored as it is.
struct StoredExtent {
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;
};
// Asks the store for the size where the index does not know it.
Result<StoredExtent> extent_of(const Source& source, const Unit& unit, const Piece& piece);

// Of the first sample, out of the first 64, that has a good value of the field.  Reads its
// header alone where that can be.
Result<StoredArray> first_npy(const Source& source, uint32_t field);

}  // namespace headrace
