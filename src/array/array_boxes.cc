// SPDX-License-Identifier: Apache-2.0
#include "array/array_boxes.h"

#include <algorithm>

namespace headrace {
namespace {

// Consecutive indexes of an axis, and where they go.
struct Run {
  size_t segment = 0;  // of the axis that segments lie along
  int64_t begin = 0;
  int64_t length = 0;
  int64_t to = 0;
};
using Runs = std::vector<Run>;

// Records that are read whole for one member of them: less than the gap that reads close anyway.
constexpr uint64_t kRecordsBytes = 16 << 10;

Runs runs_of_range(int64_t begin, int64_t length, int64_t extent, bool periodic) {
  Runs runs;
  for (int64_t done = 0; done < length;) {
    const int64_t at = periodic ? (begin + done) % extent : begin + done;
    const int64_t n = std::min(length - done, extent - at);
    runs.push_back({0, at, n, done});
    done += n;
  }
  return runs;
}

Runs runs_of_list(const std::vector<int64_t>& indexes) {
  Runs runs;
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (!runs.empty() && indexes[i] == runs.back().begin + runs.back().length)
      ++runs.back().length;
    else
      runs.push_back({0, indexes[i], 1, static_cast<int64_t>(i)});
  }
  return runs;
}

// Steps along the axis, which may lie in several files.
Runs runs_along(const Variable& variable, int64_t begin, int64_t count, int64_t step) {
  Runs runs;
  if (step > 1) {
    for (int64_t i = 0; i < count; ++i)
      for (Run run : runs_along(variable, begin + i * step, 1, 1)) {
        run.to = i;
        runs.push_back(run);
      }
    return runs;
  }
  int64_t first = 0;
  for (size_t s = 0; s < variable.segments.size(); ++s) {
    const int64_t extent = variable.segments[s]->shape[*variable.along];
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(begin + count, first + extent);
    if (from < to) runs.push_back({s, from - first, to - from, from - begin});
    first += extent;
  }
  return runs;
}

Runs runs_of_axis(const AxisChoice& choice, int64_t begin, int64_t extent) {
  if (choice.patch > 0) return runs_of_range(begin, choice.patch, extent, choice.periodic);
  if (!choice.indexes.empty()) return runs_of_list(choice.indexes);
  return runs_of_range(0, extent, extent, false);
}

// Bytes between neighbours of a chunk on each axis that the file has.
Extents stored_strides(const Array& array) {
  const size_t item = size_of(array.dtype);
  if (array.layer.extent > 0) {
    Extents chunk = array.chunk;
    chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(array.layer.axis), array.layer.extent);
    return dense_strides(chunk, item, array.fortran);
  }
  if (array.record.bytes == 0) return dense_strides(array.chunk, item, array.fortran);
  const size_t outer = array.chunk.size() - array.record.axes;
  Extents strides = dense_strides(std::span(array.chunk).first(outer), array.record.bytes);
  const Extents inner = dense_strides(std::span(array.chunk).subspan(outer), item, array.fortran);
  strides.insert(strides.end(), inner.begin(), inner.end());
  return strides;
}

// Where the first element that is shown lies in an opened chunk.
uint64_t first_in_chunk(const Array& array) {
  if (array.layer.extent == 0) return array.record.offset;
  return static_cast<uint64_t>(array.layer.index * stored_strides(array)[array.layer.axis]);
}

// Visits the boxes of one region of one array.
class RegionVisitor {
 public:
  RegionVisitor(const Array& array, size_t variable,
                const std::function<void(const ArrayBox&)>& visit)
      : array_(array),
        item_(size_of(array.dtype)),
        strides_(chunk_strides(array)),
        first_(first_in_chunk(array)),
        visit_(visit) {
    box_.array = &array;
    box_.variable = variable;
  }

  // `to` is where the region's first element goes.
  void run(const Region& region, const Extents& to) {
    for_each_chunk(region, array_.shape, array_.chunk, [&](uint64_t chunk, const Region& overlap) {
      box_.place = &array_.places[chunk];
      box_.is_missing = box_.place->stored == 0 || !array_.literal.empty();
      Extents inside(overlap.begin.size());
      const Extents begin = chunk_begin(chunk, array_.shape, array_.chunk);
      for (size_t a = 0; a < inside.size(); ++a) {
        inside[a] = overlap.begin[a] - begin[a];
        box_.to.resize(inside.size());
        box_.to[a] = to[a] + overlap.begin[a] - region.begin[a];
      }
      box_.size = overlap.size;
      box_.strides = strides_;
      if (box_.is_missing || !array_.filters.empty())
        whole_chunk(inside);
      else
        plain_stretches(inside, 0);
    });
  }

 private:
  uint64_t byte_at(const Extents& inside) const {
    auto at = static_cast<int64_t>(first_);
    for (size_t a = 0; a < inside.size(); ++a) at += inside[a] * strides_[a];
    return static_cast<uint64_t>(at);
  }
  uint64_t span_of(const Extents& size) const {
    auto last = static_cast<int64_t>(item_);
    for (size_t a = 0; a < size.size(); ++a) last += (size[a] - 1) * strides_[a];
    return static_cast<uint64_t>(last);
  }

  void whole_chunk(const Extents& inside) {
    box_.offset = box_.place->offset;
    box_.stored = box_.place->stored;
    box_.first_byte = byte_at(inside);
    box_.span_bytes = span_of(box_.size);
    visit_(box_);
  }

  // One stretch where most of what lies between is wanted; else cut along the slowest axis.
  void plain_stretches(const Extents& inside, size_t depth) {
    const uint64_t wanted = static_cast<uint64_t>(elements_in(box_.size)) * item_;
    const uint64_t span = span_of(box_.size);
    const size_t axes = box_.size.size();
    const bool dense = span <= 2 * wanted || (array_.record.bytes > 0 && span <= kRecordsBytes);
    if (dense || depth == axes) {
      const uint64_t first = byte_at(inside);
      const uint64_t there = box_.place->stored;
      // Of a chunk that is stored short no more is read: what follows it is another's.
      const bool is_short = there != kWholeFile && (first > there || span > there - first);
      box_.offset = box_.place->offset + (is_short ? std::min(first, there) : first);
      box_.stored = is_short ? there - std::min(first, there) : span;
      box_.first_byte = 0;
      box_.span_bytes = span;
      visit_(box_);
      return;
    }
    const size_t axis = array_.fortran ? axes - 1 - depth : depth;
    const Extents size = box_.size;
    const Extents to = box_.to;
    Extents at = inside;
    for (int64_t i = 0; i < size[axis]; ++i) {
      box_.size = size;
      box_.size[axis] = 1;
      box_.to = to;
      box_.to[axis] = to[axis] + i;
      at[axis] = inside[axis] + i;
      plain_stretches(at, depth + 1);
    }
    box_.size = size;
    box_.to = to;
  }

  const Array& array_;
  const size_t item_;
  const Extents strides_;
  const uint64_t first_;
  const std::function<void(const ArrayBox&)>& visit_;
  ArrayBox box_;
};

// Every combination of one run of each axis.  `only`: the segment, where they lie along no axis.
void visit_runs(const Variable& variable, const std::vector<Runs>& runs, size_t number, size_t only,
                const std::function<void(const ArrayBox&)>& visit) {
  const size_t axes = runs.size();
  if (std::any_of(runs.begin(), runs.end(), [](const Runs& r) { return r.empty(); })) return;
  std::vector<size_t> at(axes, 0);
  Region region{Extents(axes), Extents(axes)};
  Extents to(axes);
  while (true) {
    for (size_t a = 0; a < axes; ++a) {
      region.begin[a] = runs[a][at[a]].begin;
      region.size[a] = runs[a][at[a]].length;
      to[a] = runs[a][at[a]].to;
    }
    const size_t segment =
        variable.along ? runs[*variable.along][at[*variable.along]].segment : only;
    RegionVisitor(*variable.segments[segment], number, visit).run(region, to);
    size_t a = axes;
    while (a > 0 && at[a - 1] + 1 == runs[a - 1].size()) at[--a] = 0;
    if (a == 0) return;
    ++at[a - 1];
  }
}

}  // namespace

Extents chunk_strides(const Array& array) {
  Extents strides = stored_strides(array);
  if (array.layer.extent > 0)
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(array.layer.axis));
  return strides;
}

uint64_t chunk_bytes(const Array& array) {
  if (array.record.bytes == 0)
    return static_cast<uint64_t>(elements_in(array.chunk)) *
           static_cast<uint64_t>(std::max<int64_t>(1, array.layer.extent)) * size_of(array.dtype);
  const auto records = std::span(array.chunk).first(array.chunk.size() - array.record.axes);
  return static_cast<uint64_t>(elements_in(records)) * array.record.bytes;
}

void visit_region(const Array& array, const Region& region,
                  const std::function<void(const ArrayBox&)>& visit) {
  RegionVisitor(array, 0, visit).run(region, Extents(region.begin.size(), 0));
}

Bytes fill_of(const Array& array) {
  static constexpr std::byte kZeros[8] = {};
  return array.fill.empty() ? Bytes(kZeros).first(size_of(array.dtype)) : Bytes(array.fill);
}

void visit_region(const Variable& variable, const Region& region,
                  const std::function<void(const ArrayBox&)>& visit) {
  std::vector<Runs> runs;
  for (size_t a = 0; a < region.size.size(); ++a)
    runs.push_back(variable.along && a == *variable.along
                       ? runs_along(variable, region.begin[a], region.size[a], 1)
                       : Runs{{0, region.begin[a], region.size[a], 0}});
  visit_runs(variable, runs, 0, 0, visit);
}

void visit_boxes(const ArrayDescription& d, const ArrayField& field, const Spot& spot,
                 const Extents& tiles, Key draws,
                 const std::function<void(const ArrayBox&)>& visit) {
  const Array& like = array_at(d, field.variables[0], spot.position);
  const Extents begins = patch_begins(d, field, spot, tiles, draws);
  const size_t only = d.samples.cases ? static_cast<size_t>(spot.position) : 0;
  for (size_t v = 0; v < field.variables.size(); ++v) {
    const Variable& variable = d.variables[field.variables[v]];
    std::vector<Runs> runs;
    for (size_t a = 0; a < like.shape.size(); ++a)
      runs.push_back(variable.along && a == *variable.along
                         ? runs_along(variable, spot.position + field.from,
                                      std::max<int64_t>(1, field.count), field.step)
                         : runs_of_axis(field.axes[a], begins[a], like.shape[a]));
    visit_runs(variable, runs, v, only, visit);
  }
}

}  // namespace headrace
