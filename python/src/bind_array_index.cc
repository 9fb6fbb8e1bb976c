// SPDX-License-Identifier: Apache-2.0
//
// The index of files of arrays, for headrace/arrays/kept.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "array/array_index.h"
#include "convert.h"
#include "errors.h"
#include "interruptible.h"
#include "open/array_indexes.h"
#include "open/index_places.h"
#include "tree_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

ArrayPlaces places_of(nb::handle paths, nb::handle groups, const std::string& mode) {
  return {to_tree(paths).texts(), to_tree(groups).texts(), mode};
}

// None where there is none that holds; of a folder that the user named, why not.
nb::object find_index(nb::handle paths, nb::handle groups, const std::string& mode,
                      nb::handle folder) {
  const ArrayPlaces places = places_of(paths, groups, mode);
  const std::string in = folder.is_none() ? std::string() : to_tree(folder).text();
  const bool far = is_remote(in) || (!places.paths.empty() && is_remote(places.paths.front()));
  Result<Tree> found = run_interruptible(far, [&] { return find_array_index(places, in); });
  if (!found.ok() && in.empty()) return nb::none();
  return to_object(unwrap(std::move(found)));
}

// What the user should know; "" where it lies beside the data.
nb::object keep_index(nb::handle paths, nb::handle groups, const std::string& mode,
                      nb::handle index, nb::handle folder) {
  const ArrayPlaces places = places_of(paths, groups, mode);
  const std::string in = folder.is_none() ? std::string() : to_tree(folder).text();
  Tree tree = to_tree(index);
  Result<std::string> kept = internal("not kept");
  {
    nb::gil_scoped_release release;
    kept = keep_array_index(places, std::move(tree), in);
  }
  return to_str(unwrap(std::move(kept)));
}

// While somebody holds it, another process, or thread, that wants it waits.
struct LockHandle {
  std::unique_ptr<BuildLock> lock;
};

LockHandle acquire(nb::handle path) {
  const std::string text = to_tree(path).text();
  Result<std::unique_ptr<BuildLock>> lock = internal("not locked");
  {
    nb::gil_scoped_release release;
    lock = BuildLock::acquire(text, nullptr);
  }
  return {unwrap(std::move(lock))};
}

}  // namespace

void bind_array_index(nb::module_& m) {
  m.def("find_array_index", &find_index, nb::arg("paths"), nb::arg("groups"), nb::arg("mode"),
        nb::arg("index").none());
  m.def("keep_array_index", &keep_index, nb::arg("paths"), nb::arg("groups"), nb::arg("mode"),
        nb::arg("tree"), nb::arg("index").none());
  m.def("array_stamp", [](uint64_t bytes, int64_t modified_ns, const std::string& version) {
    return stamp_of({.bytes = bytes, .modified_ns = modified_ns, .version = version});
  });
  nb::class_<LockHandle>(m, "BuildLock").def("release", [](LockHandle& self) {
    self.lock.reset();
  });
  m.def("build_lock", &acquire);
}

}  // namespace headrace::py
