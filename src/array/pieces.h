// SPDX-License-Identifier: Apache-2.0
//
// An array read from end to end, in pieces that one thread holds at a time: a chunk that opens as a
// whole, or some megabytes of a plain one.
#pragma once

#include <string>
#include <vector>

#include "array/array_boxes.h"
#include "storage/store.h"

namespace headrace {

// Immutable, hence thread-safe.  The array, files and store outlive it.
class ArrayPieces {
 public:
  ArrayPieces(const Array& array, const std::vector<std::string>& files, const Store& store);

  const Array& array() const { return array_; }
  uint64_t count() const { return array_.places.size() * in_one_; }
  // The largest extent of a piece on an axis.
  int64_t extent(size_t axis) const { return piece_[axis]; }

  // The elements of one piece as they are stored, but little-endian, last axis fastest.  A piece at
  // the end of the array may be empty.  Errors name the array, the file and the chunk's offset.
  Status read(uint64_t number, Region& region, std::vector<std::byte>& dense) const;

 private:
  void cut_plain();
  Region region_of(uint64_t chunk, uint64_t piece) const;
  Status read_region(const Region& region, std::vector<std::byte>& dense) const;
  Status read_box(const ArrayBox& box, const Strided& to) const;

  const Array& array_;
  const std::vector<std::string>& files_;
  const Store& store_;
  const size_t item_;
  Extents piece_;
  Extents in_chunk_;  // pieces on each axis
  uint64_t in_one_ = 1;
};

}  // namespace headrace
