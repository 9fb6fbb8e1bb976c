// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/machine.h"
#include "format/registry.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

struct Library {
  const char* name;
  const char* package;
  const char* purpose;
  bool there;
};

constexpr Library kLibraries[] = {
#define HEADRACE_LIBRARY(name, package, purpose, there) {#name, package, purpose, there},
#include "base/libraries.inc"
#undef HEADRACE_LIBRARY
};

nb::list formats() {
  nb::list out;
  for (const Format* f : all_formats()) {
    nb::dict d;
    d["name"] = std::string(f->name);
    d["doc"] = std::string(f->doc);
    nb::list suffixes;
    for (const std::string_view s : f->suffixes) suffixes.append(std::string(s));
    d["suffixes"] = suffixes;
    d["read"] = true;
    d["write"] = f->create != nullptr;
    d["checksum"] = f->has_checksum;
    out.append(d);
  }
  return out;
}

nb::list libraries() {
  nb::list out;
  for (const Library& l : kLibraries) out.append(nb::make_tuple(l.name, l.package, l.purpose, l.there));
  return out;
}

}  // namespace

void bind_tools(nb::module_& m) {
  m.def("formats", &formats);
  m.def("libraries", &libraries);
  m.def("usable_cpus", &usable_cpus);
  m.def("affinity_cpus", &affinity_cpus);
  m.def("machine_cpus", &machine_cpus);
  m.def("usable_memory_bytes", &usable_memory_bytes);
}

}  // namespace headrace::py
