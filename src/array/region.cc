// SPDX-License-Identifier: Apache-2.0
#include "array/region.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

uint64_t grid_extent(int64_t shape, int64_t chunk) {
  return static_cast<uint64_t>((shape + chunk - 1) / chunk);
}

void copy_run(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t n,
              size_t item) {
  const auto dense = static_cast<int64_t>(item);
  if (from_step == dense && to_step == dense) {
    std::memcpy(to, from, static_cast<size_t>(n) * item);
    return;
  }
  for (int64_t i = 0; i < n; ++i, from += from_step, to += to_step) std::memcpy(to, from, item);
}

void copy_axis(const std::byte* from, const Extents& from_strides, std::byte* to,
               const Extents& to_strides, std::span<const int64_t> size, size_t axis, size_t item) {
  if (axis + 1 >= size.size()) {
    const int64_t n = size.empty() ? 1 : size[axis];
    const int64_t dense = static_cast<int64_t>(item);
    copy_run(from, size.empty() ? dense : from_strides[axis], to,
             size.empty() ? dense : to_strides[axis], n, item);
    return;
  }
  for (int64_t i = 0; i < size[axis]; ++i)
    copy_axis(from + i * from_strides[axis], from_strides, to + i * to_strides[axis], to_strides,
              size, axis + 1, item);
}

// Joins trailing axes over which both sides are one run, so that the innermost copy is long.
void join_axes(Extents& size, Extents& from, Extents& to) {
  while (size.size() > 1) {
    const size_t last = size.size() - 1;
    if (from[last - 1] != from[last] * size[last] || to[last - 1] != to[last] * size[last]) return;
    size[last - 1] *= size[last];
    from[last - 1] = from[last];
    to[last - 1] = to[last];
    size.pop_back();
    from.pop_back();
    to.pop_back();
  }
}

}  // namespace

int64_t elements_in(std::span<const int64_t> size) {
  int64_t n = 1;
  for (const int64_t extent : size) n *= extent;
  return n;
}

Extents chunk_begin(uint64_t chunk, std::span<const int64_t> shape,
                    std::span<const int64_t> chunk_shape) {
  Extents begin(shape.size());
  for (size_t a = shape.size(); a-- > 0;) {
    const uint64_t n = std::max<uint64_t>(1, grid_extent(shape[a], chunk_shape[a]));
    begin[a] = static_cast<int64_t>(chunk % n) * chunk_shape[a];
    chunk /= n;
  }
  return begin;
}

void for_each_chunk(const Region& region, std::span<const int64_t> shape,
                    std::span<const int64_t> chunk_shape,
                    const std::function<void(uint64_t, const Region&)>& visit) {
  const size_t axes = shape.size();
  if (elements_in(region.size) == 0) return;
  Extents first(axes);
  Extents last(axes);
  for (size_t a = 0; a < axes; ++a) {
    first[a] = region.begin[a] / chunk_shape[a];
    last[a] = (region.begin[a] + region.size[a] - 1) / chunk_shape[a];
  }
  Extents at = first;
  Region overlap{Extents(axes), Extents(axes)};
  while (true) {
    uint64_t number = 0;
    for (size_t a = 0; a < axes; ++a) {
      number = number * grid_extent(shape[a], chunk_shape[a]) + static_cast<uint64_t>(at[a]);
      overlap.begin[a] = std::max(region.begin[a], at[a] * chunk_shape[a]);
      const int64_t end = std::min(region.begin[a] + region.size[a], (at[a] + 1) * chunk_shape[a]);
      overlap.size[a] = end - overlap.begin[a];
    }
    visit(number, overlap);
    size_t a = axes;
    while (a > 0 && at[a - 1] == last[a - 1]) {
      at[a - 1] = first[a - 1];
      --a;
    }
    if (a == 0) return;
    ++at[a - 1];
  }
}

Extents dense_strides(std::span<const int64_t> size, size_t item, bool fortran) {
  Extents strides(size.size());
  auto step = static_cast<int64_t>(item);
  for (size_t k = 0; k < size.size(); ++k) {
    const size_t a = fortran ? k : size.size() - 1 - k;
    strides[a] = step;
    step *= size[a];
  }
  return strides;
}

void copy_box(const ConstStrided& from, const Strided& to, std::span<const int64_t> size,
              size_t item) {
  if (elements_in(size) == 0) return;
  Extents joined(size.begin(), size.end());
  Extents from_strides = from.strides;
  Extents to_strides = to.strides;
  join_axes(joined, from_strides, to_strides);
  copy_axis(from.at, from_strides, to.at, to_strides, joined, 0, item);
}

void fill_box(std::span<const std::byte> element, const Strided& to,
              std::span<const int64_t> size) {
  copy_box({element.data(), Extents(size.size(), 0)}, to, size, element.size());
}

}  // namespace headrace
