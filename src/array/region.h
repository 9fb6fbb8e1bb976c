// SPDX-License-Identifier: Apache-2.0
//
// Boxes of n-dimensional arrays: which chunks a box touches, and copying boxes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace headrace {

using Extents = std::vector<int64_t>;

struct Region {
  Extents begin;
  Extents size;
  bool operator==(const Region&) const = default;
};

int64_t elements_in(std::span<const int64_t> size);

// Calls `visit(chunk, overlap)` for every chunk that the region touches, last axis fastest:
// `chunk` is the number of the chunk in the grid (last axis fastest), `overlap` what of the
// region lies in it, in the array's indexes.  The region lies within the array.
void for_each_chunk(const Region& region, std::span<const int64_t> shape,
                    std::span<const int64_t> chunk_shape,
                    const std::function<void(uint64_t chunk, const Region& overlap)>& visit);
// First index of the chunk on each axis.
Extents chunk_begin(uint64_t chunk, std::span<const int64_t> shape,
                    std::span<const int64_t> chunk_shape);

// Memory that holds a box: how many bytes apart neighbours on each axis are.
struct Strided {
  std::byte* at = nullptr;
  Extents strides;
};
struct ConstStrided {
  const std::byte* at = nullptr;
  Extents strides;
};
// Of a dense box; `fortran`: first axis fastest.
Extents dense_strides(std::span<const int64_t> size, size_t item, bool fortran = false);

// Copies a box of `size` elements of `item` bytes.
void copy_box(const ConstStrided& from, const Strided& to, std::span<const int64_t> size,
              size_t item);
// Fills a box with one element.
void fill_box(std::span<const std::byte> element, const Strided& to, std::span<const int64_t> size);

}  // namespace headrace
