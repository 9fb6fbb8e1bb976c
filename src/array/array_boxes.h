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
// Bytes between neighbours of it on each axis of the array.
Extents chunk_strides(const Array& array);
Status check_array(const Array& array);
// The file that the array, or some of it, lies in; `otherwise` where nothing of it is stored.
std::string file_of(const ArrayDescription& d, const Array& array, std::string otherwise);
// The boxes of one region of one array.
void visit_region(const Array& array, const Region& region,
                  const std::function<void(const ArrayBox&)>& visit);

// Of one variable of the field, all axes; the new axis of stacked variables is not in it.
// `position`: of which case, where files are cases.
Extents region_shape(const ArrayDescription& d, const ArrayField& field, int64_t position = 0);
// Of a value: with the axis of stacked variables, without that of positions where it has one of
// them.
Extents value_shape(const ArrayDescription& d, const ArrayField& field, int64_t position = 0);
// On which axes of a variable cases differ, all of which a value has.
std::vector<bool> varying_axes(const ArrayDescription& d, const ArrayField& field);
// Whether the length of a value does not tell its shape: then a .npy header comes before it.
bool has_header(const ArrayDescription& d, const ArrayField& field);
// How many values of variable length a position has.
uint64_t values_in_sample(const Variable& variable);
Field schema_of(const ArrayDescription& d, const ArrayField& field);
Status check_field(const ArrayDescription& d, const ArrayField& field);
Status check_positions(const ArrayDescription& d);
// Corners and labels, and whether cases are alike where they must be.
Status check_table(const ArrayDescription& d);
Status check_cases(const ArrayDescription& d);
// Patches side by side on each patched axis; empty where none are tiled.
Result<Extents> count_tiles(const ArrayDescription& d);
// `file_bytes`: the size of each file, 0 where it is not looked at.
Hash128 fingerprint_of(const ArrayDescription& d, const std::vector<uint64_t>& file_bytes);
Bytes fill_of(const Array& array);

// Of one variable, all of a region of it: its indexes along the axis run over all files.
void visit_region(const Variable& variable, const Region& region,
                  const std::function<void(const ArrayBox&)>& visit);

// Which sample.
struct Spot {
  uint64_t row = 0;  // number of the position
  int64_t position = 0;
  uint64_t tile = 0;
};

// The array of a variable that stands for it: the position's where files are cases, else the first.
const Array& array_at(const ArrayDescription& d, uint32_t variable, int64_t position);
// The extents on the axes that the field's patches are cut from.
Extents patched_extents(const ArrayField& field, const Array& array);
// Where the patch begins on each axis: of the table, the tile's, or drawn.
Extents patch_begins(const ArrayDescription& d, const ArrayField& field, const Spot& spot,
                     const Extents& tiles, Key draws);

// In an order that is the same every time.
void visit_boxes(const ArrayDescription& d, const ArrayField& field, const Spot& spot,
                 const Extents& tiles, Key draws,
                 const std::function<void(const ArrayBox&)>& visit);

}  // namespace headrace
