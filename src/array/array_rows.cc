// SPDX-License-Identifier: Apache-2.0
#include "array/array_rows.h"

#include <algorithm>

namespace headrace {
namespace {

bool lies_plain(const Array& array) {
  return array.filters.empty() && !array.values && array.literal.empty() && !array.packed &&
         array.record.bytes == 0 && array.layer.extent == 0 && !array.sum &&
         (!array.big_endian || size_of(array.dtype) == 1) &&
         (!array.fortran || array.shape.size() == 1);
}

// Every chunk has whole rows, and all that it should have.
bool has_whole_rows(const Array& array, uint64_t row_bytes) {
  if (array.shape.empty() || array.chunk[0] <= 0) return false;
  for (size_t a = 1; a < array.shape.size(); ++a)
    if (array.chunk[a] != array.shape[a]) return false;
  const auto chunks = static_cast<size_t>((array.shape[0] + array.chunk[0] - 1) / array.chunk[0]);
  if (array.places.size() != chunks) return false;
  for (size_t c = 0; c < chunks; ++c) {
    const int64_t begin = static_cast<int64_t>(c) * array.chunk[0];
    const auto rows = static_cast<uint64_t>(std::min(array.chunk[0], array.shape[0] - begin));
    const ChunkPlace& place = array.places[c];
    if (place.stored == kWholeFile || place.stored < rows * row_bytes) return false;
  }
  return true;
}

uint64_t row_bytes_of(const Array& array) {
  uint64_t bytes = size_of(array.dtype);
  for (size_t a = 1; a < array.shape.size(); ++a) bytes *= static_cast<uint64_t>(array.shape[a]);
  return bytes;
}

bool takes_all(const ArrayField& field) {
  return std::all_of(field.axes.begin(), field.axes.end(), [](const AxisChoice& axis) {
    return axis.indexes.empty() && axis.patch == 0;
  });
}

}  // namespace

ArrayRows::ArrayRows(const ArrayDescription& d, const ArrayField& field,
                     const FieldNumbers& numbers) {
  if (field.variables.size() != 1 || field.kind != Kind::kArray || field.count != 0) return;
  if (d.samples.cases || d.samples.tiled || !d.samples.corners.empty() || !takes_all(field)) return;
  if (!numbers.lies_ready || numbers.has_header || numbers.unpacks) return;
  const Variable& variable = d.variables[field.variables[0]];
  if (variable.along != size_t{0} || variable.segments.empty()) return;
  const uint64_t bytes = row_bytes_of(*variable.segments[0]);
  std::vector<int64_t> ends;
  for (const auto& array : variable.segments) {
    if (!lies_plain(*array) || row_bytes_of(*array) != bytes || !has_whole_rows(*array, bytes) ||
        array->dtype != variable.segments[0]->dtype)
      return;
    ends.push_back((ends.empty() ? 0 : ends.back()) + array->shape[0]);
  }
  variable_ = &variable;
  from_ = field.from;
  bytes_ = bytes;
  ends_ = std::move(ends);
}

bool ArrayRows::find(int64_t position, RowPlace& out) const {
  const int64_t at = position + from_;
  if (at < 0 || ends_.empty() || at >= ends_.back()) return false;
  const auto segment =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  const Array& array = *variable_->segments[segment];
  const int64_t row = at - (segment == 0 ? 0 : ends_[segment - 1]);
  const ChunkPlace& place = array.places[static_cast<size_t>(row / array.chunk[0])];
  out = {place.file, place.offset + static_cast<uint64_t>(row % array.chunk[0]) * bytes_};
  return true;
}

}  // namespace headrace
