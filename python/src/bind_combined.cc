// SPDX-License-Identifier: Apache-2.0
//
// Data sets made of others: side by side, and one after the other.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "handles.h"
#include "index/concat.h"
#include "index/join.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// What is known of the parts besides their samples.
SourceHandle words_of(const std::vector<const SourceHandle*>& parts) {
  SourceHandle out;
  for (const SourceHandle* part : parts) {
    if (out.classes.empty()) out.classes = part->classes;
    out.notices.insert(out.notices.end(), part->notices.begin(), part->notices.end());
    out.shards.insert(out.shards.end(), part->shards.begin(), part->shards.end());
    out.item_costs.insert(out.item_costs.end(), part->item_costs.begin(), part->item_costs.end());
    out.by_python.insert(out.by_python.end(), part->by_python.begin(), part->by_python.end());
  }
  return out;
}

SourceHandle join(const std::vector<std::pair<std::string, SourceHandle*>>& parts) {
  std::vector<const SourceHandle*> handles;
  std::vector<JoinPart> list;
  for (const auto& [name, handle] : parts) {
    handles.push_back(handle);
    list.push_back({name, handle->source});
  }
  SourceHandle out = words_of(handles);
  out.format = "join";
  out.source = unwrap(join_sources(std::move(list)));
  size_t at = 0;  // fields come part by part
  for (const auto& [name, handle] : parts)
    for (size_t f = 0; f < handle->source->schema().size(); ++f) {
      const std::string& whole = out.source->schema()[at++].name;
      out.part_of[whole] = name;
      if (handle->objects.contains(handle->source->schema()[f].name)) out.objects.insert(whole);
    }
  return out;
}

SourceHandle concat(const std::vector<SourceHandle*>& parts) {
  std::vector<std::shared_ptr<const Source>> list;
  for (const SourceHandle* part : parts) list.push_back(part->source);
  SourceHandle out = words_of({parts.begin(), parts.end()});
  out.format = parts.empty() ? "" : parts[0]->format;
  for (const SourceHandle* part : parts)
    if (part->format != out.format) out.format = "concatenation";
  out.source = unwrap(concat_sources(std::move(list)));
  out.part_of = parts[0]->part_of;
  for (const SourceHandle* part : parts)
    if (part->objects != parts[0]->objects)
      check(invalid("a + b: a field holds Python objects in one and not in the other"));
  out.objects = parts[0]->objects;
  return out;
}

}  // namespace

void bind_combined(nb::module_& m) {
  m.def("join_sources", &join, nb::arg("parts"), "parts: [(name, source)]");
  m.def("concat_sources", &concat, nb::arg("parts"));
}

}  // namespace headrace::py
