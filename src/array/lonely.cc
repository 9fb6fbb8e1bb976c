// SPDX-License-Identifier: Apache-2.0
#include "array/lonely.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr double kAboutOnce = 1.25;
constexpr double kOnce = 1;           // what samples take of a chunk together: no more than it
constexpr double kSmall = 256 << 20;  // opened, so much is kept in memory: then sharing is best

// What a field takes of a chunk of this array.
struct Use {
  double samples = 0;  // of an epoch that want some of a chunk
  double part = 1;     // of the chunk, from the first byte they want to the last
};

Use use_of(const ArrayDescription& d, const ArrayField& field, const Variable& variable,
           const Array& array, uint64_t tiles) {
  const size_t rank = array.shape.size();
  Extents box(rank);
  Use use{1, 1};
  for (size_t a = 0; a < rank; ++a) {
    const auto extent = static_cast<double>(std::max<int64_t>(1, array.shape[a]));
    const auto chunk = static_cast<double>(array.chunk[a]);
    const AxisChoice& choice = field.axes[a];
    box[a] = array.chunk[a];
    if (variable.along && a == *variable.along && !d.samples.cases) {
      const int64_t reach = (std::max<int64_t>(1, field.count) - 1) * field.step + 1;
      box[a] = std::min(reach, array.chunk[a]);
      use.samples *=
          (chunk + static_cast<double>(reach) - 1) / static_cast<double>(d.samples.stride);
    } else if (choice.patch > 0) {
      box[a] = std::min(choice.patch, array.chunk[a]);
      use.samples *= std::min(1.0, (static_cast<double>(choice.patch) + chunk - 1) / extent);
    }
  }
  if (!variable.along && !d.samples.cases) use.samples *= 1e9;  // every sample wants it
  use.samples *= static_cast<double>(tiles);
  const size_t item = size_of(array.dtype);
  const Extents strides = chunk_strides(array);
  auto span = static_cast<double>(item);
  for (size_t a = 0; a < rank; ++a) span += static_cast<double>((box[a] - 1) * strides[a]);
  use.part = std::min(1.0, span / static_cast<double>(std::max<uint64_t>(1, chunk_bytes(array))));
  return use;
}

}  // namespace

std::vector<bool> find_lonely(const ArrayDescription& d, uint64_t tiles, const Store& store) {
  std::vector<double> samples(d.variables.size(), 0);
  std::vector<double> opened(d.variables.size(), 0);  // chunks' worth, if each opens for itself
  for (const ArrayField& field : d.fields)
    for (const uint32_t v : field.variables) {
      const Variable& variable = d.variables[v];
      const Array& array = *variable.segments[0];
      // Chunks of records are what several variables share.
      if (array.filters.empty() || array.values || array.record.bytes > 0) continue;
      const Use use = use_of(d, field, variable, array, tiles);
      samples[v] += use.samples;
      opened[v] += use.samples * use.part;
    }
  const auto bytes = [](const Variable& variable) {
    double sum = 0;
    for (const auto& array : variable.segments)
      sum += static_cast<double>(elements_in(array->shape)) *
             static_cast<double>(size_of(array->dtype));
    return sum;
  };
  const bool near = !d.files.empty() && store.cost(d.files[0]).is_near();
  std::vector<bool> out(d.variables.size(), false);
  for (size_t v = 0; v < out.size(); ++v) {
    const Variable& variable = d.variables[v];
    const bool in_part = near && opens_in_part(variable.segments[0]->filters) &&
                         opened[v] <= kOnce && bytes(variable) > kSmall;
    out[v] = samples[v] > 0 && (samples[v] <= kAboutOnce || in_part);
  }
  return out;
}

bool lies_alike(const ArrayBox& box, const Extents& to_strides, size_t item) {
  uint64_t elements = 1;
  for (size_t a = 0; a < box.size.size(); ++a) {
    if (box.size[a] > 1 && box.strides[a] != to_strides[a]) return false;
    elements *= static_cast<uint64_t>(box.size[a]);
  }
  return box.span_bytes == elements * item;
}

}  // namespace headrace
