// SPDX-License-Identifier: Apache-2.0
//
// The cache folder: its options, its counters, and what looks after it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind_cache.h"
#include "convert.h"
#include "errors.h"
#include "index/held_source.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// A data set that was not opened from URLs: arrays, lists of files.
SourceHandle cached(const SourceHandle& from, const CacheOptions& options) {
  const std::shared_ptr<const Store> inner(from.source, &from.source->store());
  SourceHandle out = from;
  out.cache = unwrap(CacheStore::make(inner, options));
  out.source = read_through(from.source, out.cache);
  return out;
}

nb::list listed(const std::string& folder) {
  nb::list out;
  for (const CachedObject& o : unwrap(list_cache(folder)))
    out.append(nb::make_tuple(to_str(o.name), o.object_bytes, o.cached_bytes, o.used_ns));
  return out;
}

nb::tuple verified(const std::string& folder) {
  Result<CacheCheck> checked = internal("not checked");
  {
    nb::gil_scoped_release release;
    checked = verify_cache(folder);
  }
  const CacheCheck c = unwrap(std::move(checked));
  nb::list damaged;
  for (const std::string& text : c.damaged) damaged.append(to_str(text));
  return nb::make_tuple(c.files, c.blocks, c.bytes, damaged);
}

nb::object cache_counts(const SourceHandle& s) {
  if (s.cache == nullptr) return nb::none();
  const CacheCounts c = s.cache->counts();
  nb::dict d;
  d["hits"] = c.hits;
  d["misses"] = c.misses;
  d["hit_bytes"] = c.hit_bytes;
  d["fetched_bytes"] = c.fetched_bytes;
  d["filled_bytes"] = c.filled_bytes;
  d["evicted_bytes"] = c.evicted_bytes;
  d["damaged"] = c.damaged;
  d["not_kept"] = c.not_kept;
  return d;
}

nb::list cache_notices(const SourceHandle& s) {
  nb::list out;
  if (s.cache == nullptr) return out;
  for (const std::string& text : s.cache->take_notices()) out.append(to_str(text));
  return out;
}

}  // namespace

void bind_cache(nb::module_& m) {
  nb::class_<CacheOptions>(m, "CacheOptions")
      .def(
          "__init__",
          [](CacheOptions* o, std::string folder, uint64_t bytes, int64_t keep_free) {
            new (o) CacheOptions{std::move(folder), bytes, keep_free};
          },
          nb::arg("folder"), nb::arg("bytes") = 0, nb::arg("keep_free") = -1)
      .def_ro("folder", &CacheOptions::folder)
      .def_ro("bytes", &CacheOptions::bytes)
      .def_ro("keep_free", &CacheOptions::keep_free);
  m.def("list_cache", &listed, nb::arg("folder"));
  m.def("verify_cache", &verified, nb::arg("folder"));
  m.def(
      "clear_cache", [](const std::string& folder) { return unwrap(clear_cache(folder)); },
      nb::arg("folder"));
}

void bind_cached(nb::class_<SourceHandle>& source) {
  source.def("cache_counts", &cache_counts)
      .def("cache_notices", &cache_notices)
      .def("wait_until_cached",
           [](const SourceHandle& s) {
             nb::gil_scoped_release release;
             if (s.cache != nullptr) s.cache->wait_until_written();
           })
      .def("cached", &cached, nb::arg("options"));
}

}  // namespace headrace::py
