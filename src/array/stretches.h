// SPDX-License-Identifier: Apache-2.0
//
// Numbers after they were gathered from several files, each of which has its own byte order and
// its own way of packing: NetCDF files of one year each have their own scale_factor, add_offset
// and _FillValue.
#pragma once

#include <functional>

#include "array/array_source.h"

namespace headrace {

// Whether the field's numbers are unpacked: some file of some variable of it is packed, or its
// variables, or files of them, are of several stored types.  Those of the others then become
// numbers of the same type, and NaN where they are missing.
bool is_unpacked(const ArrayDescription& d, const ArrayField& field);
bool is_mixed(const ArrayDescription& d, const ArrayField& field);
// The type of the field's numbers: as stored; unpacked: the float that all of them become.
DType result_dtype(const ArrayDescription& d, const ArrayField& field);
DType unpacked_dtype(const Variable& variable);
// Whether files of the variable are of several stored types.
bool is_mixed(const Variable& variable);
// Bytes between two elements of the variable before they are made: those of its widest file.
size_t slot_bytes(const Variable& variable);
bool is_unpacked(const Variable& variable);
// Whether some of the field's elements are big-endian.
bool is_turned(const ArrayDescription& d, const ArrayField& field);
// Whether the files of the variable are packed alike, so that one scale serves for all.
bool is_packed_alike(const Variable& variable);

// Elements of a dense region that follow each other and come from one array.
struct Stretch {
  const Array* array = nullptr;
  size_t first = 0;
  size_t count = 0;
};

// Of a region of `shape` that begins at `begin` along the axis of the variable's segments and takes
// every `step`-th position of it.
void visit_stretches(const Variable& variable, int64_t begin, int64_t step, const Extents& shape,
                     const std::function<void(const Stretch&)>& visit);

// The elements of one stretch of `raw`, all of a region, in which they lie `slot` bytes apart:
// moved together, little-endian.
Bytes turn_stretch(const Stretch& stretch, size_t slot, MutableBytes raw);
// And unpacks them into `out`, which has room for all of the region as numbers of type `to`.
void unpack_stretch(const Stretch& stretch, Bytes elements, DType to, MutableBytes out);

}  // namespace headrace
