// SPDX-License-Identifier: Apache-2.0
#include "pack/array_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "array/array_boxes.h"
#include "array/read_box.h"
#include "array/stretches.h"
#include "array/unpack.h"
#include "base/parallel.h"

namespace headrace {
namespace {

// A field that takes all of a variable, so that the checks of sources can be asked.
ArrayField all_of(const ArrayDescription& d, uint32_t variable) {
  ArrayField field{.name = d.variables[variable].name, .variables = {variable}};
  field.axes.resize(d.variables[variable].segments[0]->shape.size());
  return field;
}

}  // namespace

Result<std::unique_ptr<const ArrayReader>> ArrayReader::make(ArrayDescription description,
                                                             std::shared_ptr<const Store> store) {
  for (uint32_t v = 0; v < description.variables.size(); ++v) {
    const Variable& variable = description.variables[v];
    if (variable.segments.empty()) return internal("a variable without arrays");
    if (Status s = check_field(description, all_of(description, v)); !s.ok())
      return s.with(fmt::format("'{}'", variable.name));
  }
  std::unique_ptr<ArrayReader> reader(new ArrayReader(std::move(description), std::move(store)));
  for (const Variable& variable : reader->d_.variables)
    reader->unpacks_.push_back(!is_packed_alike(variable));
  return std::unique_ptr<const ArrayReader>(std::move(reader));
}

Extents ArrayReader::shape(size_t variable) const {
  const Variable& v = d_.variables[variable];
  Extents shape = v.segments[0]->shape;
  if (v.along)
    for (size_t s = 1; s < v.segments.size(); ++s)
      shape[*v.along] += v.segments[s]->shape[*v.along];
  return shape;
}

DType ArrayReader::dtype(size_t variable) const {
  const Variable& v = d_.variables[variable];
  return unpacks_[variable] ? unpacked_dtype(v) : v.segments[0]->dtype;
}

bool ArrayReader::unpacks(size_t variable) const {
  return unpacks_[variable];
}

Status ArrayReader::read(size_t variable, const Region& region, unsigned threads,
                         Buffer& out) const {
  constexpr size_t kInJob = 16;  // boxes that a thread takes at a time: plain ones may be small
  if (variable >= d_.variables.size()) return internal("no such variable");
  const Extents whole = shape(variable);
  bool inside = region.begin.size() == whole.size() && region.size.size() == whole.size();
  for (size_t a = 0; inside && a < whole.size(); ++a)
    inside = region.begin[a] >= 0 && region.size[a] >= 0 &&
             region.size[a] <= whole[a] - std::min(whole[a], region.begin[a]);
  if (!inside)
    return internal(fmt::format("a region at [{}] that is not within [{}]",
                                fmt::join(region.begin, ","), fmt::join(whole, ",")));
  const size_t item = slot_bytes(d_.variables[variable]);
  const auto elements = static_cast<size_t>(elements_in(region.size));
  out.resize(elements * size_of(dtype(variable)));
  if (out.size() == 0) return {};
  Buffer packed;
  if (unpacks_[variable]) packed.resize(elements * item);
  const MutableBytes raw = unpacks_[variable] ? packed.span() : out.span();
  std::vector<ArrayBox> boxes;
  visit_region(d_.variables[variable], region, [&](const ArrayBox& box) { boxes.push_back(box); });
  const Strided to{raw.data(), dense_strides(region.size, item)};
  const size_t in_job = boxes.size() > kInJob * 4 * threads ? kInJob : 1;
  const auto work = [&](size_t job) -> Status {
    for (size_t b = job * in_job; b < std::min(boxes.size(), (job + 1) * in_job); ++b)
      HEADRACE_TRY(read_box(boxes[b], d_.files, *store_, to));
    return {};
  };
  HEADRACE_TRY(parallel_for((boxes.size() + in_job - 1) / in_job, threads, work));
  const int64_t begin =
      d_.variables[variable].along ? region.begin[*d_.variables[variable].along] : 0;
  Status status;
  visit_stretches(d_.variables[variable], begin, 1, region.size, [&](const Stretch& stretch) {
    const Bytes stored = turn_stretch(stretch, item, raw);
    if (!unpacks_[variable]) return;
    unpack_stretch(stretch, stored, dtype(variable), out.span());
    if (is_mixed(d_.variables[variable]) && !stretch.array->packed && status.ok())
      status = check_exact(*stretch.array, stored);
  });
  return status;
}

}  // namespace headrace
