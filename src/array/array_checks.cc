// SPDX-License-Identifier: Apache-2.0
//
// Whether a description fits together, and what follows from it: shapes, tiles, the fingerprint.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "array/array_boxes.h"
#include "array/stretches.h"
#include "array/unpack.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 47;
constexpr int64_t kMostSteps = int64_t{1} << 31;  // the product of two fits

const Array& first_array(const ArrayDescription& d, const ArrayField& field) {
  return *d.variables[field.variables[0]].segments[0];
}

int64_t total_along(const Variable& variable) {
  int64_t n = 0;
  for (const auto& segment : variable.segments) n += segment->shape[*variable.along];
  return n;
}

// The axis of the positions, of which a value has one.
bool is_left_out(const Variable& variable, const ArrayField& field, size_t axis) {
  return variable.along && axis == *variable.along && field.count == 0;
}

bool is_patched(const ArrayField& field) {
  return std::any_of(field.axes.begin(), field.axes.end(),
                     [](const AxisChoice& c) { return c.patch > 0; });
}

Status check_axis(const Variable& variable, const Array& array, const AxisChoice& choice,
                  size_t axis) {
  const int64_t extent = array.shape[axis];
  const std::string name =
      axis < variable.dims.size() ? variable.dims[axis] : fmt::format("axis {}", axis);
  if (choice.patch > extent)
    return invalid(fmt::format("a patch of {} does not fit into '{}', which has {}", choice.patch,
                               name, extent));
  for (const int64_t index : choice.indexes)
    if (index < 0 || index >= extent)
      return invalid(
          fmt::format("there is no index {} on '{}', which has {}", index, name, extent));
  return {};
}

// Numbers come from the file: everything that is computed from them stays far below 2^63.
bool multiply(uint64_t& product, int64_t by) {
  const auto factor = static_cast<uint64_t>(std::max<int64_t>(1, by));
  if (product > kMostElements / factor) return false;
  product *= factor;
  return true;
}

// The last axes lie within a record, which has room for them.
bool fits_records(const Array& array) {
  const RecordPlace& record = array.record;
  if (record.bytes == 0) return true;
  const size_t rank = array.shape.size();
  // In Fortran order there is one record, which holds all.
  if (record.axes > rank || (array.fortran && record.axes != rank)) return false;
  if (record.offset > record.bytes) return false;
  uint64_t inner = size_of(array.dtype);
  uint64_t all = record.bytes;
  for (size_t a = 0; a < rank; ++a) {
    const bool is_inner = a >= rank - record.axes;
    if (is_inner && array.chunk[a] != array.shape[a]) return false;
    if (!multiply(is_inner ? inner : all, array.chunk[a])) return false;
  }
  return inner <= record.bytes - record.offset;
}

// Chunks have the axis of which one index is shown.
bool fits_layer(const Array& array) {
  const ChunkLayer& layer = array.layer;
  if (layer.extent == 0) return true;
  uint64_t all = size_of(array.dtype);
  for (const int64_t extent : array.chunk)
    if (!multiply(all, extent)) return false;
  return array.record.bytes == 0 && layer.axis <= array.chunk.size() && layer.index >= 0 &&
         layer.index < layer.extent && multiply(all, layer.extent);
}

Status check_values(const Array& array) {
  const ValueTable& table = *array.values;
  uint64_t elements = 1;
  for (const int64_t extent : array.shape)
    if (extent < 0 || !multiply(elements, extent)) return internal("odd extents of values");
  if (table.by_number) return {};
  if (table.extents.size() != static_cast<uint64_t>(elements_in(array.shape)))
    return internal("values do not fit the shape");
  for (const ValueExtent& extent : table.extents)
    if (!table.literal.empty() && (extent.offset > table.literal.size() ||
                                   extent.bytes > table.literal.size() - extent.offset))
      return internal("a value past the end of the literal");
  return {};
}

// Numbers are turned and unpacked file by file; values of variable length as the first file says.
Status check_segment(const ArrayDescription& d, const Variable& variable, size_t number) {
  const Array& like = *variable.segments[0];
  const Array& array = *variable.segments[number];
  const bool are_numbers = array.values == nullptr && array.text_end == TextEnd::kNone;
  bool fits = (array.dtype == like.dtype || are_numbers) &&
              array.shape.size() == like.shape.size() && array.text_end == like.text_end &&
              (array.values == nullptr) == (like.values == nullptr) &&
              (array.values == nullptr || array.big_endian == like.big_endian);
  for (size_t a = 0; fits && a < like.shape.size(); ++a)
    fits = a == variable.along || array.shape[a] == like.shape[a];
  if (!fits)
    return invalid(fmt::format(
        "'{}' is {}[{}] in {} and {}[{}] in {}: files along one axis must be alike, but for their "
        "length, their type and their scale_factor, add_offset and _FillValue",
        variable.name, dtype_name(like.dtype), fmt::join(like.shape, ","),
        file_of(d, like, "one file"), dtype_name(array.dtype), fmt::join(array.shape, ","),
        file_of(d, array, "another")));
  return check_array(array);
}

// A sample has all values of its position.
Status check_value_field(const Variable& variable, const ArrayField& field) {
  const auto refuse = [&variable](std::string_view what) {
    return unsupported(fmt::format("'{}' has values of variable length: {}", variable.name, what));
  };
  if (field.variables.size() > 1) return refuse("they are not stacked");
  if (field.count != 0 || field.from != 0) return refuse("window and horizon are for numbers");
  for (const AxisChoice& choice : field.axes)
    if (!choice.indexes.empty() || choice.patch != 0)
      return refuse("sel and patch are for numbers");
  if (variable.along && *variable.along != 0)
    return refuse("samples run along their first axis, and no other");
  const Array& like = *variable.segments[0];
  if (like.big_endian && size_of(like.dtype) > 1 && values_in_sample(variable) != 1)
    return refuse("several big-endian ones a sample are not read");
  return {};
}

}  // namespace

Status check_array(const Array& array) {
  if (array.values) return check_values(array);
  const auto wrong = [&array](std::string_view what) {
    return invalid(fmt::format("'{}' says a shape of [{}] in chunks of [{}]: {}", array.name,
                               fmt::join(array.shape, ","), fmt::join(array.chunk, ","), what));
  };
  uint64_t chunks = 1;
  uint64_t elements = 1;
  uint64_t in_chunk = 1;
  if (array.chunk.size() != array.shape.size()) return wrong("ranks differ");
  for (size_t a = 0; a < array.shape.size(); ++a) {
    if (array.chunk[a] < 1 || array.shape[a] < 0) return wrong("an extent is negative");
    if (!multiply(elements, array.shape[a]) || !multiply(in_chunk, array.chunk[a]))
      return wrong("too many elements");
    chunks *= static_cast<uint64_t>((array.shape[a] + array.chunk[a] - 1) / array.chunk[a]);
  }
  if (!fits_records(array)) return wrong("its elements do not fit into their records");
  if (!fits_layer(array)) return internal("a layer that its chunks do not have");
  if (!array.literal.empty() && (chunks != 1 || array.literal.size() < chunk_bytes(array)))
    return wrong("less is stored than that");
  if (array.places.size() != chunks) return internal("places do not fit the grid of chunks");
  if (!array.fill.empty() && array.fill.size() != size_of(array.dtype))
    return internal("a fill value of another size than an element");
  if (array.packed && (array.dtype == DType::kF16 || array.dtype == DType::kBF16))
    return unsupported(fmt::format("'{}': packed {}", array.name, dtype_name(array.dtype)));
  return check_chain(array.filters);
}

std::string file_of(const ArrayDescription& d, const Array& array, std::string otherwise) {
  for (const ChunkPlace& place : array.places)
    if (place.stored != 0 && place.file < d.files.size()) return d.files[place.file];
  return otherwise;
}

Extents region_shape(const ArrayDescription& d, const ArrayField& field, int64_t position) {
  const Variable& variable = d.variables[field.variables[0]];
  const Array& array = array_at(d, field.variables[0], position);
  Extents shape;
  for (size_t a = 0; a < array.shape.size(); ++a) {
    const AxisChoice& choice = field.axes[a];
    if (variable.along && a == *variable.along)
      shape.push_back(std::max<int64_t>(1, field.count));
    else if (choice.patch > 0)
      shape.push_back(choice.patch);
    else
      shape.push_back(choice.indexes.empty() ? array.shape[a]
                                             : static_cast<int64_t>(choice.indexes.size()));
  }
  return shape;
}

Extents value_shape(const ArrayDescription& d, const ArrayField& field, int64_t position) {
  Extents out;
  if (field.variables.size() > 1) out.push_back(static_cast<int64_t>(field.variables.size()));
  const Extents shape = region_shape(d, field, position);
  for (size_t a = 0; a < shape.size(); ++a)
    if (!is_left_out(d.variables[field.variables[0]], field, a)) out.push_back(shape[a]);
  return out;
}

uint64_t values_in_sample(const Variable& variable) {
  const Extents& shape = variable.segments[0]->shape;
  uint64_t count = 1;
  for (size_t a = 0; a < shape.size(); ++a)
    if (a != variable.along) count *= static_cast<uint64_t>(shape[a]);
  return count;
}

Field schema_of(const ArrayDescription& d, const ArrayField& field) {
  const Variable& variable = d.variables[field.variables[0]];
  const Array& array = *variable.segments[0];
  Field out{.name = field.name, .kind = field.kind};
  const auto several = [](const auto& segment) { return elements_in(segment->shape) != 1; };
  const bool many = d.samples.cases ? std::ranges::any_of(variable.segments, several)
                                    : values_in_sample(variable) != 1;
  if (field.kind != Kind::kArray) {
    out.many = array.values != nullptr && many;
    return out;
  }
  if (array.values != nullptr) {
    out.dtype = array.dtype;
    out.shape = {kVaries};
    out.many = many;
    return out;
  }
  out.dtype = result_dtype(d, field);
  out.shape = value_shape(d, field);
  if (has_header(d, field)) {
    out.kind = Kind::kNpy;
    return out;
  }
  const std::vector<bool> varies = varying_axes(d, field);
  for (size_t a = 0, at = field.variables.size() > 1 ? 1 : 0; a < varies.size(); ++a) {
    if (is_left_out(variable, field, a)) continue;
    if (varies[a]) out.shape[at] = kVaries;
    ++at;
  }
  return out;
}

Status check_field(const ArrayDescription& d, const ArrayField& field) {
  if (field.variables.empty()) return invalid("no variable is named");
  for (const uint32_t v : field.variables)
    if (v >= d.variables.size() || d.variables[v].segments.empty())
      return internal("a variable that is not there, or without arrays");
  const Array& like = first_array(d, field);
  const Variable& lead = d.variables[field.variables[0]];
  for (const uint32_t v : field.variables) {
    const Variable& variable = d.variables[v];
    if (!d.samples.cases)  // else check_cases() looks at them
      for (size_t s = 0; s < variable.segments.size(); ++s)
        HEADRACE_TRY(check_segment(d, variable, s));
    const Array& array = *variable.segments[0];
    const bool are_numbers = array.values == nullptr && like.values == nullptr &&
                             array.text_end == like.text_end && field.kind == Kind::kArray;
    if (array.shape != like.shape || variable.along != lead.along ||
        (array.dtype != like.dtype && !are_numbers))
      return invalid(
          fmt::format("'{}' is stored as {}[{}], '{}' as {}[{}]: variables of one field must be "
                      "alike; make a field of each",
                      lead.name, dtype_name(like.dtype), fmt::join(like.shape, ","), variable.name,
                      dtype_name(array.dtype), fmt::join(array.shape, ",")));
  }
  if (like.values != nullptr) return check_value_field(lead, field);
  if (field.kind == Kind::kText && (like.text_end == TextEnd::kNone || like.shape.size() > 2))
    return unsupported(fmt::format("'{}' holds several texts of fixed length a sample", lead.name));
  if (field.axes.size() != like.shape.size()) return internal("a choice for every axis is wanted");
  if (field.count < 0) return invalid(fmt::format("a window of {} steps", field.count));
  if (field.step < 1 || field.step > kMostSteps || field.count > kMostSteps)
    return invalid(
        fmt::format("a window of {} steps, each {} from the next", field.count, field.step));
  for (size_t a = 0; a < field.axes.size(); ++a)
    if (!(lead.along && a == *lead.along)) HEADRACE_TRY(check_axis(lead, like, field.axes[a], a));
  return {};
}

Status check_positions(const ArrayDescription& d) {
  const ArraySamples& s = d.samples;
  int64_t first = 0;
  int64_t last = s.end - 1;
  if (!s.starts.empty()) {
    first = *std::min_element(s.starts.begin(), s.starts.end());
    last = *std::max_element(s.starts.begin(), s.starts.end());
  }
  if (last < first) return invalid("the axis is shorter than the window: there is no sample");
  for (const ArrayField& field : d.fields)
    for (const uint32_t v : field.variables) {
      const Variable& variable = d.variables[v];
      if (!variable.along) continue;
      const int64_t total = total_along(variable);
      const int64_t end =
          last + field.from + (std::max<int64_t>(1, field.count) - 1) * field.step + 1;
      if (first + field.from < 0 || end > total)
        return invalid(fmt::format(
            "field '{}': a sample wants the steps {} to {} of '{}', which has {} along its axis",
            field.name, first + field.from, end - 1, variable.name, total));
    }
  return {};
}

Result<Extents> count_tiles(const ArrayDescription& d) {
  Extents tiles;
  if (!d.samples.tiled) return tiles;
  const ArrayField* lead = nullptr;
  for (const ArrayField& field : d.fields) {
    if (!is_patched(field)) continue;
    Extents mine;
    const Array& array = first_array(d, field);
    for (size_t a = 0; a < field.axes.size(); ++a)
      if (field.axes[a].patch > 0)
        mine.push_back((array.shape[a] + field.axes[a].patch - 1) / field.axes[a].patch);
    if (lead != nullptr && mine != tiles)
      return invalid(fmt::format("fields '{}' and '{}' are cut into different numbers of tiles",
                                 lead->name, field.name));
    tiles = mine;
    lead = &field;
  }
  return tiles;
}

namespace {

// Where chunks lie and how large they are tells one file from another that looks alike.
void add_places(Hasher& hasher, const Array& array) {
  hasher.add(chain_text(array.filters)).add(uint64_t{array.places.size()});
  for (const ChunkPlace& place : array.places) hasher.add(place.offset).add(place.stored);
  hasher.add(Bytes(array.literal));
}

// Another scale makes other numbers of the same bytes.
void add_packing(Hasher& hasher, const Array& array) {
  if (!array.packed && !array.missing) return;
  hasher.add(uint64_t{array.packed}).add(uint64_t{array.missing.has_value()});
  for (const double number : {array.scale, array.offset, array.missing.value_or(0)})
    hasher.add(std::bit_cast<uint64_t>(number));
  for (const double number : array.also_missing) hasher.add(std::bit_cast<uint64_t>(number));
}

}  // namespace

Hash128 fingerprint_of(const ArrayDescription& d, const std::vector<uint64_t>& file_bytes) {
  Hasher hasher;
  hasher.add("arrays");
  const auto numbers = [&hasher](const auto& list) {
    hasher.add(uint64_t{list.size()});
    for (const int64_t n : list) hasher.add(static_cast<uint64_t>(n));
  };
  for (const Variable& variable : d.variables) {
    hasher.add(variable.name).add(uint64_t{variable.segments.size()});
    for (const auto& array : variable.segments) {
      hasher.add(dtype_name(array->dtype));
      numbers(array->shape);
      numbers(array->chunk);
      add_places(hasher, *array);
      add_packing(hasher, *array);
      if (array->values) hasher.add(array->values->total_bytes);
      if (array->record.bytes) hasher.add(array->record.bytes).add(array->record.offset);
      if (array->layer.extent) hasher.add(static_cast<uint64_t>(array->layer.index));
    }
  }
  for (const ArrayField& field : d.fields) {
    hasher.add(field.name).add(static_cast<uint64_t>(field.from));
    hasher.add(static_cast<uint64_t>(field.count));
    if (field.step != 1) hasher.add(static_cast<uint64_t>(field.step));
    numbers(std::vector<int64_t>(field.variables.begin(), field.variables.end()));
    for (const AxisChoice& choice : field.axes) {
      numbers(choice.indexes);
      hasher.add(static_cast<uint64_t>(choice.patch)).add(uint64_t{choice.periodic});
    }
  }
  numbers(d.samples.starts);
  hasher.add(static_cast<uint64_t>(d.samples.end)).add(static_cast<uint64_t>(d.samples.stride));
  hasher.add(uint64_t{d.samples.tiled}).add(uint64_t{d.samples.cases});
  numbers(d.samples.corners);
  for (const std::string& name : d.samples.names) hasher.add(name);
  hasher.add(std::bit_cast<uint64_t>(d.samples.share));
  for (const LabelPlaces& label : d.samples.labels)
    for (const auto& places : label.classes) numbers(places);
  for (size_t f = 0; f < file_bytes.size(); ++f)
    if (file_bytes[f] != 0) hasher.add(base_name(d.files[f])).add(file_bytes[f]);
  return hasher.finish();
}

}  // namespace headrace
