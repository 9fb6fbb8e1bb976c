// SPDX-License-Identifier: Apache-2.0
//
// Where patches begin, and files that are a sample each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "array/array_boxes.h"

namespace headrace {
namespace {

size_t columns(const ArraySamples& samples) {
  return samples.starts.empty() ? 0 : samples.corners.size() / samples.starts.size();
}

// The element of the label that the patch must hold; nothing where it may lie anywhere.
const int64_t* drawn_label(const ArraySamples& samples, int64_t position, size_t axes, Key draws) {
  if (samples.labels.empty()) return nullptr;
  Rng rng(draws.with("label"));
  if (rng.uniform() >= samples.share) return nullptr;
  const auto& classes = samples.labels[static_cast<size_t>(position)].classes;
  if (classes.empty()) return nullptr;
  const std::vector<int64_t>& places = classes[rng.below(classes.size())];
  return places.data() + rng.below(places.size() / axes) * axes;
}

const Array& first_of(const ArrayDescription& d, const ArrayField& field) {
  return *d.variables[field.variables[0]].segments[0];
}

std::string case_of(const ArrayDescription& d, const Array& array, size_t number) {
  return file_of(d, array, fmt::format("case {}", number));
}

// Cases of one variable: one type, one rank, and one extent where no patch is cut.
Status check_case(const ArrayDescription& d, const ArrayField& field, const Variable& variable,
                  size_t number) {
  const Array& like = *variable.segments[0];
  const Array& array = *variable.segments[number];
  const auto say = [&](std::string_view what) {
    return invalid(fmt::format("{}: '{}' is {}[{}], and {}[{}] in {}: {}",
                               case_of(d, array, number), variable.name, dtype_name(array.dtype),
                               fmt::join(array.shape, ","), dtype_name(like.dtype),
                               fmt::join(like.shape, ","), case_of(d, like, 0), what));
  };
  if (array.values || like.values) {
    if (!array.values || !like.values || array.dtype != like.dtype)
      return say("values of variable length are of one type in all files");
    if (array.big_endian && size_of(array.dtype) > 1)
      return unsupported(fmt::format(
          "'{}' has big-endian values of variable length, and files are samples", variable.name));
    return check_array(array);
  }
  const bool are_numbers = array.text_end == TextEnd::kNone && like.text_end == TextEnd::kNone;
  if ((array.dtype != like.dtype && !are_numbers) || array.shape.size() != like.shape.size())
    return say("all files must have as many axes, and numbers or texts");
  for (size_t a = 0; a < field.axes.size(); ++a) {
    const int64_t patch = field.axes[a].patch;
    if (array.shape[a] != like.shape[a] && !field.axes[a].indexes.empty())
      return say(
          fmt::format("sel of axis {} takes its indexes from the first file: leave it out", a));
    if (patch > array.shape[a])
      return invalid(
          fmt::format("{}: a patch of {} does not fit into axis {} of '{}', which has {}",
                      case_of(d, array, number), patch, a, variable.name, array.shape[a]));
  }
  return check_array(array);
}

// Patches of all fields begin at the same place: the fields must have the same room for them.
Status check_room(const ArrayDescription& d, size_t number) {
  const ArrayField* lead = nullptr;
  Extents room;
  for (const ArrayField& field : d.fields) {
    const Array& array = array_at(d, field.variables[0], static_cast<int64_t>(number));
    const Extents mine = patched_extents(field, array);
    if (mine.empty()) continue;
    if (lead != nullptr && mine != room)
      return invalid(fmt::format("{}: patches are cut from [{}] for '{}' and from [{}] for '{}'",
                                 case_of(d, array, number), fmt::join(room, ","), lead->name,
                                 fmt::join(mine, ","), field.name));
    lead = &field;
    room = mine;
  }
  return {};
}

Status check_labels(const ArrayDescription& d) {
  const ArraySamples& s = d.samples;
  if (s.labels.empty()) return {};
  if (!s.cases || s.labels.size() != static_cast<size_t>(s.end))
    return internal("labels of other cases than there are");
  for (size_t number = 0; number < s.labels.size(); ++number)
    for (const ArrayField& field : d.fields) {
      const Extents room =
          patched_extents(field, array_at(d, field.variables[0], static_cast<int64_t>(number)));
      for (const auto& places : s.labels[number].classes) {
        if (room.empty()) continue;
        if (places.empty() || places.size() % room.size() != 0)
          return internal("places of a label on other axes than patches");
        for (size_t i = 0; i < places.size(); ++i)
          if (places[i] < 0 || places[i] >= room[i % room.size()])
            return invalid(fmt::format("field '{}' is smaller than the label", field.name));
      }
    }
  return {};
}

}  // namespace

std::vector<bool> varying_axes(const ArrayDescription& d, const ArrayField& field) {
  std::vector<bool> out(field.axes.size(), false);
  if (!d.samples.cases) return out;
  const auto& segments = d.variables[field.variables[0]].segments;
  for (size_t a = 0; a < out.size(); ++a) {
    if (field.axes[a].patch > 0 || !field.axes[a].indexes.empty()) continue;
    out[a] = std::any_of(segments.begin(), segments.end(), [&segments, a](const auto& array) {
      return a < array->shape.size() && a < segments[0]->shape.size() &&
             array->shape[a] != segments[0]->shape[a];
    });
  }
  return out;
}

bool has_header(const ArrayDescription& d, const ArrayField& field) {
  if (field.kind != Kind::kArray || first_of(d, field).values != nullptr) return false;
  const std::vector<bool> varies = varying_axes(d, field);
  const auto count = std::count(varies.begin(), varies.end(), true);
  const Extents shape = region_shape(d, field);
  bool is_empty = false;  // whatever its other extents are
  for (size_t a = 0; a < varies.size(); ++a)
    is_empty = is_empty || (!varies[a] && a < shape.size() && shape[a] == 0);
  return count > 1 || (count == 1 && is_empty);
}

const Array& array_at(const ArrayDescription& d, uint32_t variable, int64_t position) {
  return *d.variables[variable].segments[d.samples.cases ? static_cast<size_t>(position) : 0];
}

Extents patched_extents(const ArrayField& field, const Array& array) {
  Extents out;
  for (size_t a = 0; a < field.axes.size(); ++a)
    if (field.axes[a].patch > 0) out.push_back(array.shape[a]);
  return out;
}

Extents patch_begins(const ArrayDescription& d, const ArrayField& field, const Spot& spot,
                     const Extents& tiles, Key draws) {
  const Array& array = array_at(d, field.variables[0], spot.position);
  const size_t axes = patched_extents(field, array).size();
  Extents begins(field.axes.size(), 0);
  if (axes == 0) return begins;
  const int64_t* label = drawn_label(d.samples, spot.position, axes, draws);
  size_t patched = 0;
  for (size_t a = 0; a < field.axes.size(); ++a) {
    const AxisChoice& choice = field.axes[a];
    if (choice.patch <= 0) continue;
    const int64_t last = choice.periodic ? array.shape[a] - 1 : array.shape[a] - choice.patch;
    if (!d.samples.corners.empty()) {
      begins[a] = d.samples.corners[spot.row * columns(d.samples) + patched];
    } else if (tiles.empty()) {
      // A patch that holds the element begins at most its own size before it.
      const int64_t from =
          label == nullptr ? 0 : std::max<int64_t>(0, label[patched] - choice.patch + 1);
      const int64_t to = label == nullptr ? last : std::min(label[patched], last);
      Rng rng(draws.with("patch").with(uint64_t{patched}));
      begins[a] = from + static_cast<int64_t>(rng.below(static_cast<uint64_t>(to - from + 1)));
    } else {
      uint64_t number = spot.tile;
      for (size_t t = tiles.size() - 1; t > patched; --t) number /= static_cast<uint64_t>(tiles[t]);
      const auto at = static_cast<int64_t>(number % static_cast<uint64_t>(tiles[patched]));
      begins[a] = std::min(at * choice.patch, array.shape[a] - choice.patch);
    }
    ++patched;
  }
  return begins;
}

Status check_table(const ArrayDescription& d) {
  const ArraySamples& s = d.samples;
  if (s.corners.empty()) return check_labels(d);
  if (s.starts.empty() || s.corners.size() % s.starts.size() != 0)
    return internal("corners without starts");
  if (s.tiled) return invalid("a table says where patches begin; tiled=True says it too");
  const size_t width = columns(s);
  for (const ArrayField& field : d.fields) {
    const size_t axes = patched_extents(field, array_at(d, field.variables[0], 0)).size();
    if (axes != 0 && axes != width)
      return invalid(
          fmt::format("field '{}': the rows of starts have {} numbers for a patch of {} axes",
                      field.name, width, axes));
    if (axes == 0) continue;
    for (size_t row = 0; row < s.starts.size(); ++row) {
      const Array& array = array_at(d, field.variables[0], s.starts[row]);
      for (size_t a = 0, k = 0; a < field.axes.size(); ++a) {
        const AxisChoice& choice = field.axes[a];
        if (choice.patch <= 0) continue;
        const int64_t at = s.corners[row * width + k++];
        const int64_t last = choice.periodic ? array.shape[a] - 1 : array.shape[a] - choice.patch;
        if (at < 0 || at > last)
          return invalid(fmt::format(
              "row {} of starts: a patch of {} from {} on does not lie in axis {} of '{}', which "
              "has {}",
              row, choice.patch, at, a, d.variables[field.variables[0]].name, array.shape[a]));
      }
    }
  }
  return check_labels(d);
}

Status check_cases(const ArrayDescription& d) {
  const ArraySamples& s = d.samples;
  if (!s.cases) return {};
  const auto count = static_cast<size_t>(s.end);
  if (s.names.size() != count) return internal("as many names as cases are wanted");
  for (const int64_t start : s.starts)
    if (start < 0 || start >= s.end)
      return invalid(fmt::format("starts: there is no file {}, but {} files", start, s.end));
  for (const ArrayField& field : d.fields) {
    for (const AxisChoice& choice : field.axes)
      if (choice.periodic && !s.labels.empty())
        return invalid("patches that hold a label do not go over the end of periodic axes");
    for (const uint32_t v : field.variables) {
      const Variable& variable = d.variables[v];
      if (variable.segments.size() != count) return internal("a variable that not all cases have");
      for (size_t n = 0; n < count; ++n) {
        HEADRACE_TRY(check_case(d, field, variable, n));
        const Array& like = array_at(d, field.variables[0], static_cast<int64_t>(n));
        if (variable.segments[n]->shape != like.shape ||
            variable.segments[n]->big_endian != like.big_endian)
          return invalid(fmt::format("{}: '{}' and '{}' are of one field and must be alike",
                                     case_of(d, like, n), like.name, variable.name));
      }
    }
  }
  for (size_t n = 0; n < count; ++n) {
    HEADRACE_TRY(check_room(d, n));
    for (const ArrayField& field : d.fields)
      if (s.tiled &&
          patched_extents(field, array_at(d, field.variables[0], static_cast<int64_t>(n))) !=
              patched_extents(field, array_at(d, field.variables[0], 0)))
        return invalid("tiled=True wants files of one shape; these differ");
  }
  return {};
}

}  // namespace headrace
