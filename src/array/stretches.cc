// SPDX-License-Identifier: Apache-2.0
#include "array/stretches.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "array/unpack.h"

namespace headrace {
namespace {

// By their bits: NaN is what some files say, and is not equal to itself.
bool same_number(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// How many of `steps` positions, `begin`, `begin + step`, …, lie before `end`.
int64_t steps_before(int64_t begin, int64_t step, int64_t steps, int64_t end) {
  return end <= begin ? 0 : std::min(steps, (end - begin + step - 1) / step);
}

bool same_packing(const Array& a, const Array& b) {
  if (a.packed != b.packed || a.dtype != b.dtype) return false;
  if (!a.packed) return true;
  const bool same_missing = a.missing.has_value() == b.missing.has_value() &&
                            (!a.missing || same_number(*a.missing, *b.missing)) &&
                            a.also_missing == b.also_missing;
  return same_missing && same_number(a.scale, b.scale) && same_number(a.offset, b.offset);
}

}  // namespace

bool is_mixed(const Variable& variable) {
  return std::any_of(
      variable.segments.begin(), variable.segments.end(),
      [&variable](const auto& array) { return array->dtype != variable.segments[0]->dtype; });
}

bool is_mixed(const ArrayDescription& d, const ArrayField& field) {
  const DType first = d.variables[field.variables[0]].segments[0]->dtype;
  return std::any_of(field.variables.begin(), field.variables.end(), [&](uint32_t v) {
    return is_mixed(d.variables[v]) || d.variables[v].segments[0]->dtype != first;
  });
}

size_t slot_bytes(const Variable& variable) {
  size_t out = 0;
  for (const auto& array : variable.segments) out = std::max(out, size_of(array->dtype));
  return out;
}

bool is_unpacked(const Variable& variable) {
  return is_mixed(variable) || std::any_of(variable.segments.begin(), variable.segments.end(),
                                           [](const auto& array) { return array->packed; });
}

bool is_unpacked(const ArrayDescription& d, const ArrayField& field) {
  return is_mixed(d, field) ||
         std::any_of(field.variables.begin(), field.variables.end(),
                     [&d](uint32_t v) { return is_unpacked(d.variables[v]); });
}

DType unpacked_dtype(const Variable& variable) {
  const bool is_wide =
      std::any_of(variable.segments.begin(), variable.segments.end(),
                  [](const auto& array) { return unpacked_dtype(array->dtype) == DType::kF64; });
  return is_wide ? DType::kF64 : DType::kF32;
}

DType result_dtype(const ArrayDescription& d, const ArrayField& field) {
  if (!is_unpacked(d, field)) return d.variables[field.variables[0]].segments[0]->dtype;
  const bool is_wide = std::any_of(field.variables.begin(), field.variables.end(), [&](uint32_t v) {
    return unpacked_dtype(d.variables[v]) == DType::kF64;
  });
  return is_wide ? DType::kF64 : DType::kF32;
}

bool is_turned(const ArrayDescription& d, const ArrayField& field) {
  return std::any_of(field.variables.begin(), field.variables.end(), [&d](uint32_t v) {
    const auto& segments = d.variables[v].segments;
    return std::any_of(segments.begin(), segments.end(),
                       [](const auto& array) { return array->big_endian; });
  });
}

bool is_packed_alike(const Variable& variable) {
  return std::all_of(
      variable.segments.begin(), variable.segments.end(),
      [&variable](const auto& array) { return same_packing(*array, *variable.segments[0]); });
}

void visit_stretches(const Variable& variable, int64_t begin, int64_t step, const Extents& shape,
                     const std::function<void(const Stretch&)>& visit) {
  const auto total = static_cast<size_t>(elements_in(shape));
  if (!variable.along || variable.segments.size() == 1)
    return visit({variable.segments[0].get(), 0, total});
  const size_t axis = *variable.along;
  const int64_t steps = shape[axis];
  size_t inner = 1;
  for (size_t a = axis + 1; a < shape.size(); ++a) inner *= static_cast<size_t>(shape[a]);
  const size_t outer = total == 0 ? 0 : total / (static_cast<size_t>(steps) * inner);
  int64_t first = 0;  // of the segment, along the axis
  for (const auto& segment : variable.segments) {
    const int64_t from = steps_before(begin, step, steps, first);
    first += segment->shape[axis];
    const int64_t to = steps_before(begin, step, steps, first);
    if (from >= to) continue;
    if (to - from == steps) return visit({segment.get(), 0, total});
    for (size_t o = 0; o < outer; ++o)
      visit({segment.get(), (o * static_cast<size_t>(steps) + static_cast<size_t>(from)) * inner,
             static_cast<size_t>(to - from) * inner});
  }
}

Bytes turn_stretch(const Stretch& stretch, size_t slot, MutableBytes raw) {
  const size_t item = size_of(stretch.array->dtype);
  const MutableBytes room = raw.subspan(stretch.first * slot, stretch.count * slot);
  if (item != slot)
    for (size_t i = 1; i < stretch.count; ++i)
      std::memmove(room.data() + i * item, room.data() + i * slot, item);
  const MutableBytes elements = room.first(stretch.count * item);
  if (stretch.array->big_endian) swap_bytes(elements, item);
  return elements;
}

void unpack_stretch(const Stretch& stretch, Bytes elements, DType to, MutableBytes out) {
  const size_t made = size_of(to);
  unpack_numbers(*stretch.array, elements, to,
                 out.subspan(stretch.first * made, stretch.count * made));
}

}  // namespace headrace
