// SPDX-License-Identifier: Apache-2.0
//
// Files of arrays: headrace/arrays say where the chunks lie, as plain dicts.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array/array_source.h"
#include "array/description.h"
#include "array/labels.h"
#include "array/stats.h"
#include "array_description.h"
#include "base/crc32c.h"
#include "base/machine.h"
#include "base/parallel.h"
#include "convert.h"
#include "errors.h"
#include "handles.h"
#include "open/expand.h"
#include "open/index_places.h"
#include "progress.h"
#include "python_store.h"
#include "storage/open_store.h"
#include "tree_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

Status on_all_cpus(size_t count, const std::function<Status(size_t)>& job) {
  return parallel_for(count, static_cast<unsigned>(usable_cpus()), job);
}

// Names of files need not be UTF-8.
std::vector<std::string> files_of(nb::handle list) {
  return to_tree(list).texts();
}

bool has(nb::handle dict, const char* name) {
  return nb::cast<nb::dict>(dict).contains(name) && !dict[name].is_none();
}

}  // namespace

ArrayDescription description_of(nb::handle d, const Store& store) {
  nb::dict plain;
  for (const auto& [name, value] : nb::borrow<nb::dict>(d))
    if (nb::cast<std::string>(name) != "readers") plain[name] = value;
  const Tree tree = to_tree(plain);
  Result<ArrayDescription> made = internal("not made");
  {
    nb::gil_scoped_release release;
    made = headrace::description_of(tree, store, on_all_cpus);
  }
  return unwrap(std::move(made));
}

std::shared_ptr<const Store> store_of(nb::handle d) {
  const std::vector<std::string> files = files_of(d["files"]);
  std::shared_ptr<const Store> store =
      unwrap(open_store(files.empty() ? "/" : files.front())).store;
  return has(d, "readers") ? python_store(d["readers"], std::move(store)) : store;
}

namespace {

SourceHandle open_arrays(nb::handle d) {
  SourceHandle out;
  const std::shared_ptr<const Store> store = store_of(d);
  ArrayDescription description = description_of(d, *store);
  Result<std::shared_ptr<const Source>> made = internal("not opened");
  {
    nb::gil_scoped_release release;  // it may ask a server
    made = make_array_source(std::move(description), store);
  }
  out.source = unwrap(std::move(made));
  out.format = nb::cast<std::string>(d["format"]);
  out.notices = nb::cast<std::vector<std::string>>(d["notices"]);
  if (has(d, "readers"))
    for (const auto& [path, reader] : nb::cast<nb::dict>(d["readers"]))
      out.by_python.push_back(nb::cast<std::string>(path));
  return out;
}

// (count, NaNs, mean, deviation, min, max) of one variable, or of each index of an axis of it.
nb::list array_stats(nb::handle d, uint32_t variable, std::optional<size_t> per, unsigned threads,
                     nb::object function) {
  const std::shared_ptr<const Store> store = store_of(d);
  const ArrayDescription description = description_of(d, *store);
  Progress progress(std::move(function));
  StatsOptions options{.per = per, .threads = threads == 0 ? usable_cpus() : threads};
  options.progress = [&progress](uint64_t done, uint64_t all) { progress.tell(done, all); };
  options.cancel = progress.cancel();
  Result<std::vector<Moments>> found = internal("not counted");
  {
    nb::gil_scoped_release release;
    found = headrace::array_stats(description, variable, *store, options);
  }
  progress.finish();
  nb::list out;
  for (const Moments& m : unwrap(std::move(found)))
    out.append(nb::make_tuple(m.count, m.nans, m.mean, m.deviation(), m.min, m.max));
  return out;
}

// Of each case a list, of each class an array of places on the last axes.
nb::list find_labels(nb::handle d, uint32_t variable, size_t axes) {
  const std::shared_ptr<const Store> store = store_of(d);
  const ArrayDescription description = description_of(d, *store);
  Result<std::vector<LabelPlaces>> found = internal("not looked for");
  {
    nb::gil_scoped_release release;
    found = headrace::find_labels(description, variable, axes, *store, on_all_cpus);
  }
  nb::list out;
  for (LabelPlaces& places : unwrap(std::move(found))) {
    nb::list classes;
    for (std::vector<int64_t>& one : places.classes) {
      auto* held = new std::vector<int64_t>(std::move(one));
      nb::capsule owner(held,
                        [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
      classes.append(
          nb::ndarray<nb::numpy, int64_t>(held->data(), {held->size() / axes, axes}, owner));
    }
    out.append(classes);
  }
  return out;
}

// Where the sidecar of `path` lies if not beside it; `make`: the folder, too.  "" where there is
// none.
std::string cached_sidecar_of(const std::string& path, bool make) {
  const std::string folder = make ? unwrap(cache_folder()) : existing_cache_folder();
  return folder.empty() ? "" : cached_sidecar(folder, FileInfo{.path = path});
}

}  // namespace

void bind_array_source(nb::module_& m) {
  m.def("open_arrays", &open_arrays);
  m.def("array_stats", &array_stats, nb::arg("description"), nb::arg("variable"),
        nb::arg("per").none(), nb::arg("threads"), nb::arg("progress").none());
  m.def("find_labels", &find_labels);
  m.def("cached_sidecar", &cached_sidecar_of);
  m.def("crc32c", [](nb::bytes data) {
    return crc32c(as_bytes(std::string_view(data.c_str(), data.size())));
  });
  m.def("expand_urls", [](const std::vector<std::string>& urls) {
    nb::list out;
    for (const std::string& url : unwrap(expand_urls(*unwrap(store_of_all(urls)), urls)))
      out.append(to_str(url));
    return out;
  });
}

}  // namespace headrace::py
