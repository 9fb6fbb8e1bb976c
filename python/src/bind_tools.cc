// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/machine.h"
#include "convert.h"
#include "errors.h"
#include "format/registry.h"
#include "handles.h"
#include "pack/check.h"
#include "pack/pack.h"
#include "pack_options.h"
#include "progress.h"

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
    nb::list only;
    for (const std::string_view name : f->only) only.append(std::string(name));
    d["only"] = only;
    d["checksum"] = f->has_checksum;
    d["end"] = f->has_end;
    d["lengths"] = f->guards_lengths;
    d["python"] = f->needs_python;
    d["rewrites"] = f->rewrites;
    out.append(d);
  }
  return out;
}

nb::list libraries() {
  nb::list out;
  for (const Library& l : kLibraries)
    out.append(nb::make_tuple(l.name, l.package, l.purpose, l.there));
  return out;
}

}  // namespace

PackOptions pack_options(const nb::dict& d) {
  PackOptions o;
  o.format = nb::cast<std::string>(d["format"]);
  o.shards = nb::cast<uint64_t>(d["shards"]);
  if (const auto bytes = nb::cast<uint64_t>(d["shard_bytes"]); bytes > 0) o.shard_bytes = bytes;
  o.for_ranks = nb::cast<uint32_t>(d["for_ranks"]);
  o.for_workers = nb::cast<uint32_t>(d["for_workers"]);
  o.keep_order = nb::cast<bool>(d["keep_order"]);
  o.seed = nb::cast<uint64_t>(d["seed"]);
  o.threads = nb::cast<unsigned>(d["threads"]);
  o.fields = nb::cast<std::vector<std::string>>(d["fields"]);
  o.drop = nb::cast<std::vector<std::string>>(d["drop"]);
  o.rename = nb::cast<std::vector<std::pair<std::string, std::string>>>(d["rename"]);
  o.recode_fields = nb::cast<std::vector<std::string>>(d["recode"]);
  o.recode.max_side = nb::cast<int>(d["max_side"]);
  o.recode.quality = nb::cast<int>(d["quality"]);
  o.recode.raw = nb::cast<bool>(d["raw"]);
  o.recode.orient = nb::cast<bool>(d["orient"]);
  o.memory_bytes = nb::cast<uint64_t>(d["memory"]);
  return o;
}

namespace {

nb::dict estimate(const SourceHandle& source, const std::string& folder, const nb::dict& options) {
  const PackOptions o = pack_options(options);
  Result<PackEstimate> found = internal("not estimated");
  {
    nb::gil_scoped_release release;
    found = estimate_pack(*source.source, folder, o);
  }
  const PackEstimate e = unwrap(std::move(found));
  nb::dict d;
  d["samples"] = e.samples;
  d["shards"] = e.shards;
  d["bytes"] = e.bytes();
  d["free_bytes"] = e.free_bytes;
  return d;
}

// None where the folder holds no pack.
nb::object check_folder(const std::string& folder, unsigned threads, nb::object function) {
  Progress progress(std::move(function));
  PackCheckOptions o{.threads = threads};
  o.progress = [&progress](uint64_t done, uint64_t all) { progress.tell(done, all); };
  o.cancel = progress.cancel();
  Result<std::optional<PackCheck>> checked = internal("not checked");
  {
    nb::gil_scoped_release release;
    checked = check_pack(folder, o);
  }
  progress.finish();
  const std::optional<PackCheck> found = unwrap(std::move(checked));
  if (!found) return nb::none();
  nb::dict d;
  d["shards"] = found->shards;
  d["samples"] = found->samples;
  d["files"] = found->files;
  d["bytes"] = found->bytes;
  nb::list problems;
  for (const std::string& problem : found->problems) problems.append(to_str(problem));
  d["problems"] = problems;
  return d;
}

nb::dict pack_source(const SourceHandle& source, const std::string& folder, const nb::dict& options,
                     nb::object function) {
  Progress progress(std::move(function));
  PackOptions o = pack_options(options);
  o.progress = [&progress](const PackProgress& p) {
    progress.tell(p.samples_done, p.samples, p.shards_done, p.shards, p.bytes);
  };
  o.cancel = progress.cancel();
  Result<PackResult> packed = internal("not packed");
  {
    nb::gil_scoped_release release;
    packed = pack(*source.source, folder, o);
  }
  progress.finish();
  const PackResult r = unwrap(std::move(packed));
  nb::dict d;
  d["samples"] = r.samples;
  d["shards"] = r.shards;
  d["shards_kept"] = r.shards_kept;
  d["samples_kept"] = r.samples_kept;
  d["bytes"] = r.bytes;
  d["was_complete"] = r.was_complete;
  return d;
}

}  // namespace

void bind_tools(nb::module_& m) {
  m.def("formats", &formats);
  m.def("libraries", &libraries);
  m.def("pack", &pack_source, nb::arg("source"), nb::arg("folder"), nb::arg("options"),
        nb::arg("progress") = nb::none());
  m.def("estimate_pack", &estimate, nb::arg("source"), nb::arg("folder"), nb::arg("options"));
  m.def("check_pack", &check_folder, nb::arg("folder"), nb::arg("threads") = 0,
        nb::arg("progress") = nb::none());
  m.def("usable_cpus", &usable_cpus);
  m.def("affinity_cpus", &affinity_cpus);
  m.def("machine_cpus", &machine_cpus);
  m.def("usable_memory_bytes", &usable_memory_bytes);
}

}  // namespace headrace::py
