// SPDX-License-Identifier: Apache-2.0
//
// Chunks that are better opened where they are used than kept for others.
#pragma once

#include <vector>

#include "array/array_boxes.h"

namespace headrace {

// For each variable, whether its chunks are opened by each sample for itself: because about one
// sample of an epoch wants each, or because what the samples take of it, each for itself, is less
// than all of it (Blosc opens in part, and near storage is read again for nothing much) and the
// whole would not stay in memory anyway.
std::vector<bool> find_lonely(const ArrayDescription& d, uint64_t tiles, const Store& store);

// Whether the box lies in its chunk, without gaps, as it does where it goes.
bool lies_alike(const ArrayBox& box, const Extents& to_strides, size_t item);

}  // namespace headrace
