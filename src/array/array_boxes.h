// SPDX-License-Identifier: Apache-2.0
//
// From a sample's field to the boxes of chunks that make it up.
#pragma once

#include <functional>

#include "array/array_source.h"
#include "base/hash.h"
#include "base/rng.h"
#include "index/schema.h"

namespace headrace {

// A box of one chunk and where it goes.
struct ArrayBox {
  const Array* array = nullptr;
  const ChunkPlace* place = nullptr;
  size_t variable = 0;      // which of the field's
  bool is_missing = false;  // the chunk is not there: literal, or fill
  uint64_t offset = 0;      // what is read of the file: all of the chunk, or of a plain one the
  uint64_t stored = 0;      //   stretch that holds the box
  uint64_t first_byte = 0;  // of the box in what was read, and opened
  uint64_t span_bytes = 0;  // from there to its last byte
  Extents strides;          // of the box in what was read
  Extents size;
  Extents to;  // its first element in the field's region
};

// Of a chunk, opened.
uint64_t chunk_bytes(const Array& array);
Status check_array(const Array& array);
// The boxes of one region of one array.
void visit_region(const Array& array, const Region& region,
                  const std::function<void(const ArrayBox&)>& visit);

// Of one variable of the field, all axes; the new axis of stacked variables is not in it.
Extents region_shape(const ArrayDescription& d, const ArrayField& field);
// How many values of variable length a position has.
uint64_t values_in_sample(const Variable& variable);
Field schema_of(const ArrayDescription& d, const ArrayField& field);
Status check_field(const ArrayDescription& d, const ArrayField& field);
Status check_positions(const ArrayDescription& d);
// Patches side by side on each patched axis; empty where none are tiled.
Result<Extents> count_tiles(const ArrayDescription& d);
Hash128 fingerprint_of(const ArrayDescription& d);
Bytes fill_of(const Array& array);

// Of one variable, all of a region of it: its indexes along the axis run over all files.
void visit_region(const Variable& variable, const Region& region,
                  const std::function<void(const ArrayBox&)>& visit);

// In an order that is the same every time.
void visit_boxes(const ArrayDescription& d, const ArrayField& field, int64_t position,
                 const Extents& tiles, uint64_t tile, Key draws,
                 const std::function<void(const ArrayBox&)>& visit);

}  // namespace headrace
