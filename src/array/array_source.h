// SPDX-License-Identifier: Apache-2.0
//
// ArraySource: arrays in chunks, as samples.  A sample is a position along one axis (time), or
// a tile; a field is a window of one or several arrays around it: some steps along the axis, all
// or some or a patch of the other axes.
//
//   field "t2m", from 0, count 4, patch 128×128      chunks of the file
//   position 17, tile 3  ──►  region [17..21) × [128..256) × [0..128)  ──►  units, boxes of them
//
// needs() names the chunks, assemble() copies the boxes.  Chunks are units: each is read and
// opened once while it is wanted, or once for each sample where no other sample is likely to want
// it.  Random patches draw from the sample's key, alike for all fields.
// Where files are cases (volumes), a position is a file.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/filters.h"
#include "array/region.h"
#include "array/value_table.h"
#include "index/source.h"

namespace headrace {

// Where a chunk lies.
struct ChunkPlace {
  uint32_t file = 0;
  uint32_t skipped = 0;  // filters that were left out
  uint64_t offset = 0;
  uint64_t stored = 0;  // kWholeFile: all of the file; 0: there is none, its elements are the fill
};

// Elements that are members of records (HDF5's compound types): each record has one element, or the
// elements of its last axes, which lie one after the other.
struct RecordPlace {
  uint64_t bytes = 0;   // of a record; 0: there are none, elements lie one after the other
  uint64_t offset = 0;  // of the first element in its record
  uint32_t axes = 0;    // the last axes, which lie within a record
};

// One index of an axis that the array does not show: a level of a cube, beside arrays that have
// none. Chunks are those of the file and have the axis; `shape`, `chunk` and `places` leave it out.
struct ChunkLayer {
  size_t axis = 0;     // where it lies among the axes of a chunk
  int64_t extent = 0;  // of a chunk along it; 0: there is none, chunks are as they are shown
  int64_t index = 0;   // within the chunk
};

// The CRC-32 of a member of a zip, of which the only chunk is the end, or all of it once opened.
struct MemberSum {
  uint32_t before = 0;  // of the member's bytes that come before the chunk
  uint32_t all = 0;
};

// How a text of fixed length ends, where it is shorter.
enum class TextEnd : uint8_t { kNone, kFirstNul, kNuls, kBlanks };

// One array of one file (or folder).  Immutable once made.
struct Array {
  std::string name;
  DType dtype = DType::kF32;  // of the stored elements
  bool big_endian = false;
  bool fortran = false;  // within a chunk, first axis fastest
  Extents shape;
  Extents chunk;                   // of the same rank
  std::vector<std::byte> fill;     // one element, as stored; empty: zeros
  FilterChain filters;             // empty: chunks lie plain, and are read in part
  std::vector<ChunkPlace> places;  // of the grid, last axis fastest
  // value = stored * scale + offset, NaN where the stored equals `missing`: NetCDF's packing.  Of
  // an array that is not packed they count where another file of the variable is.
  bool packed = false;
  double scale = 1;
  double offset = -0.0;  // adds nothing, not even to -0
  std::optional<double> missing;
  std::vector<double> also_missing;  // where there are several
  RecordPlace record;
  ChunkLayer layer;
  std::optional<MemberSum> sum;    // verified where all of the chunk is read
  std::vector<std::byte> literal;  // not empty: the only chunk, and no place is looked at
  TextEnd text_end = TextEnd::kNone;
  // Set: an element is a value of variable length, of elements of `dtype`; there are no chunks.
  std::shared_ptr<const ValueTable> values;
};

// Arrays of the same name in several files, one after the other along the axis.
struct Variable {
  std::string name;
  std::vector<std::string> dims;
  std::vector<std::shared_ptr<const Array>> segments;
  std::optional<size_t> along;  // the axis that segments and positions run along
};

// What of an axis other than the positions'.
struct AxisChoice {
  std::vector<int64_t> indexes;  // these; empty: all, or a patch
  int64_t patch = 0;             // > 0: so many, from a drawn or tiled place on
  bool periodic = false;         // patches may go over the end and on at the beginning
};

struct ArrayField {
  std::string name;
  std::vector<uint32_t> variables;  // several: stacked on a new first axis
  int64_t from = 0;                 // relative to the sample's position
  int64_t count = 0;                // steps; 0: one, and the axis is left out
  std::vector<AxisChoice> axes;     // one for every axis of the variables; the positions' unused
  Kind kind = Kind::kArray;         // kBytes or kText: of values of variable length, and texts
  int64_t step = 1;                 // from one step of the count to the next
};

// Where some of the elements of a label lie that are not 0, of each class by itself: indexes on the
// axes that patches are cut from, one element's after the other's.
struct LabelPlaces {
  std::vector<std::vector<int64_t>> classes;
};

struct ArraySamples {
  std::vector<int64_t> starts;  // positions, in order; empty: 0, stride, 2·stride, … below `end`
  // Where the patch begins on each axis that it is cut from, for each of `starts`; empty: drawn.
  std::vector<int64_t> corners;
  int64_t end = 0;
  int64_t stride = 1;
  bool tiled = false;  // patches stand side by side, each a sample; else their place is drawn
  // A position is a segment of every variable, and all of it: files that are a sample each.  On the
  // axes that patches are cut from they may have any extents.
  bool cases = false;
  std::vector<std::string> names;   // of the cases: their keys
  double share = 0;                 // of the patches, which hold the label
  std::vector<LabelPlaces> labels;  // of each case; empty: no label is looked at
};

struct ArrayDescription {
  std::vector<Variable> variables;
  std::vector<std::string> files;
  // Their sizes, as far as whoever found them knows: kWholeFile where not, or empty.
  std::vector<uint64_t> file_bytes = {};
  std::vector<ArrayField> fields;
  ArraySamples samples;
  // Not null: counts the chunks that are opened.
  std::shared_ptr<std::atomic<uint64_t>> openings = nullptr;
};

// Checks that everything fits: ranks, window within the axis, patch within the field, equal shapes
// of stacked variables.  The error names the field and both numbers.
Result<std::shared_ptr<const Source>> make_array_source(ArrayDescription description,
                                                        std::shared_ptr<const Store> store);

}  // namespace headrace
