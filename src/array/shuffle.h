// SPDX-License-Identifier: Apache-2.0
//
// The shuffle of HDF5, numcodecs and Blosc: all first bytes of the elements, then all second ones,
// … A row of such bytes is a plane.
#pragma once

#include <span>

#include "base/bytes.h"

namespace headrace {

// What becomes of the bytes that a chunk opens to.
enum class NextUse : uint8_t {
  kRead,  // this thread reads them now: they stay in its cache
  kRest,  // nobody does for a while (they lie in a batch): they go past the cache, which needs them
          // neither to be read before they are written
};

// `out` is as long as `in`; what is left over beyond whole elements stays at the end.
void undo_shuffle(Bytes in, MutableBytes out, size_t item, NextUse next_use = NextUse::kRead);

// Elements of as many bytes as there are planes (kMostPlanes at most), as many as `out` holds: the
// first bytes of the planes make the first element.
inline constexpr size_t kMostPlanes = 16;
void merge_planes(std::span<const std::byte* const> planes, MutableBytes out, NextUse next_use);

}  // namespace headrace
