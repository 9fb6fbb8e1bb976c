// SPDX-License-Identifier: Apache-2.0
//
// What the metadata of files of arrays say, read by the core: as dicts by the names of
// headrace/arrays/model.py.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array/array_index.h"
#include "array/open_file.h"
#include "array/zarr_documents.h"
#include "base/npy.h"
#include "base/parallel.h"
#include "convert.h"
#include "errors.h"
#include "storage/open_store.h"
#include "tree_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

nb::dict npy_dict(const Result<NpyHeader>& parsed, const std::string& path) {
  const auto named = [&path](const Status& s) { return s.in_file(path); };
  if (!parsed.ok()) check(named(parsed.status()));
  const NpyHeader& header = parsed.value();
  const std::optional<DType> dtype = header.type.dtype();
  if (!dtype)
    check(named(
        unsupported(fmt::format("an array of type {}: numbers are wanted", header.type.descr))));
  nb::dict out;
  out["dtype"] = to_str(dtype_name(*dtype));
  out["big_endian"] = header.type.big_endian;
  out["fortran"] = header.fortran_order;
  out["shape"] = nb::cast(header.shape);
  out["data"] = header.data;
  out["bytes"] = header.data_bytes();
  return out;
}

// What array is a member of `path` that begins with `head` and
// has `total` bytes.
nb::dict npy_member(const std::string& path, nb::bytes head, uint64_t total) {
  const Bytes bytes = as_bytes(std::string_view(head.c_str(), head.size()));
  const Result<uint64_t> wanted = npy_header_bytes(bytes);
  if (!wanted.ok()) check(wanted.status().in_file(path));
  if (wanted.value() > bytes.size())
    check(corrupt("the header of an array is cut short").in_file(path));
  return npy_dict(parse_npy(bytes, total), path);
}

// (path, bytes, time, whether it is a folder) of each.
nb::list looked_at_list(const std::vector<FileInfo>& looked_at) {
  nb::list out;
  for (const FileInfo& info : looked_at)
    out.append(nb::make_tuple(to_str(info.path), info.bytes, stamp_of(info), info.is_folder));
  return out;
}

using Opener = Result<OpenedFile> (*)(const Store&, const std::string&);

// (arrays, attributes of the file).
nb::tuple open_by(Opener opener, nb::handle path) {
  const OpenedUrl at = unwrap(open_store(to_tree(path).text()));
  Result<OpenedFile> opened = internal("not opened");
  {
    nb::gil_scoped_release release;
    opened = opener(*at.store, at.path);
  }
  const OpenedFile file = unwrap(std::move(opened));
  nb::list arrays;
  for (const FileArray& array : file.arrays) arrays.append(to_object(tree_of(array)));
  return nb::make_tuple(arrays, to_object(file.attributes));
}

// (texts by name, which of them is consolidated, what was looked at).
nb::tuple zarr_documents(nb::handle root) {
  const OpenedUrl at = unwrap(open_store(to_tree(root).text()));
  Result<ZarrDocuments> read = internal("not read");
  {
    nb::gil_scoped_release release;
    const unsigned threads = waiting_threads(*at.store, at.path);
    read = read_zarr_documents(*at.store, at.path,
                               [threads](size_t count, const std::function<Status(size_t)>& job) {
                                 return parallel_for(count, threads, job);
                               });
  }
  const ZarrDocuments found = unwrap(std::move(read));
  nb::dict texts;
  for (const auto& [name, text] : found.texts)
    texts[to_str(name)] = nb::bytes(text.data(), text.size());
  return nb::make_tuple(texts, to_str(found.consolidated), looked_at_list(found.looked_at));
}

bool is_zarr_folder(nb::handle path) {
  const OpenedUrl at = unwrap(open_store(to_tree(path).text()));
  nb::gil_scoped_release release;
  const Result<bool> found = is_zarr(*at.store, at.path);
  return found.ok() && found.value();
}

}  // namespace

void bind_array_files(nb::module_& m) {
  m.def("npy_arrays", [](nb::handle path) { return open_by(open_npy, path); });
  m.def("netcdf_arrays", [](nb::handle path) { return open_by(open_netcdf_classic, path); });
  m.def("npy_member", &npy_member);
  m.def("zarr_documents", &zarr_documents);
  m.def("is_zarr", &is_zarr_folder);
}

}  // namespace headrace::py
