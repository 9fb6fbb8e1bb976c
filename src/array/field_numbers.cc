// SPDX-License-Identifier: Apache-2.0
#include "array/field_numbers.h"

#include "array/array_boxes.h"
#include "array/stretches.h"
#include "array/unpack.h"
#include "base/npy.h"

namespace headrace {
namespace {

// What of the sample's value of one variable comes from which file.
void stretches_of(const ArrayDescription& d, const ArrayField& field, size_t v, int64_t position,
                  const Extents& shape, const std::function<void(const Stretch&)>& visit) {
  if (d.samples.cases)
    visit({&array_at(d, field.variables[v], position), 0, static_cast<size_t>(elements_in(shape))});
  else
    visit_stretches(d.variables[field.variables[v]], position + field.from, field.step, shape,
                    visit);
}

}  // namespace

FieldNumbers numbers_of(const ArrayDescription& d, const ArrayField& field) {
  FieldNumbers out{.dtype = result_dtype(d, field),
                   .unpacks = is_unpacked(d, field),
                   .is_mixed = is_mixed(d, field),
                   .has_header = has_header(d, field),
                   .item_begins = {0}};
  out.lies_ready = !out.unpacks && !is_turned(d, field);
  for (const uint32_t v : field.variables)
    out.item_begins.push_back(out.item_begins.back() + slot_bytes(d.variables[v]));
  return out;
}

std::string npy_header(const ArrayDescription& d, const ArrayField& field, DType dtype,
                       int64_t position) {
  const Extents shape = value_shape(d, field, position);
  return make_npy_header(dtype, {shape.begin(), shape.end()});
}

Status finish_numbers(const ArrayDescription& d, const ArrayField& field, const FieldNumbers& how,
                      int64_t position, const Extents& shape, MutableBytes raw, MutableBytes out) {
  const auto elements = static_cast<size_t>(elements_in(shape));
  const size_t made = elements * size_of(how.dtype);
  Status status;
  // Each variable, and each file of it, has its own byte order, its own scale and its own type.
  for (size_t v = 0; v < field.variables.size(); ++v) {
    const size_t begin = elements * how.item_begins[v];
    const MutableBytes mine = raw.subspan(begin, elements * how.item_begins[v + 1] - begin);
    const size_t slot = how.item_begins[v + 1] - how.item_begins[v];
    stretches_of(d, field, v, position, shape, [&](const Stretch& stretch) {
      const Bytes stored = turn_stretch(stretch, slot, mine);
      if (!how.unpacks) return;
      unpack_stretch(stretch, stored, how.dtype, out.subspan(v * made, made));
      if (how.is_mixed && !stretch.array->packed && status.ok())
        status = check_exact(*stretch.array, stored);
    });
  }
  return status;
}

}  // namespace headrace
