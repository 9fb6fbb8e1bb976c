// SPDX-License-Identifier: Apache-2.0
//
// Files of arrays: headrace/arrays say where the chunks lie, as plain dicts.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "array/array_source.h"
#include "array/flat_values.h"
#include "array/heap_values.h"
#include "array/labels.h"
#include "array/netcdf_classic.h"
#include "array/stats.h"
#include "array_description.h"
#include "base/crc32c.h"
#include "base/machine.h"
#include "base/npy.h"
#include "base/parallel.h"
#include "convert.h"
#include "errors.h"
#include "handles.h"
#include "open/expand.h"
#include "open/index_places.h"
#include "progress.h"
#include "python_store.h"
#include "storage/open_store.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

// Rows of (file, filters left out, offset, stored bytes).
using Places = nb::ndarray<const uint64_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;

template <typename T>
T get(nb::handle dict, const char* name) {
  return nb::cast<T>(dict[name]);
}

bool has(nb::handle dict, const char* name) {
  return nb::cast<nb::dict>(dict).contains(name) && !dict[name].is_none();
}

std::vector<std::byte> bytes_of(nb::handle dict, const char* name) {
  const auto held = get<nb::bytes>(dict, name);
  const Bytes bytes = as_bytes(std::string_view(held.c_str(), held.size()));
  return {bytes.begin(), bytes.end()};
}

FilterChain chain_of(nb::handle list) {
  FilterChain chain;
  for (const auto& [name, parameter] :
       nb::cast<std::vector<std::pair<std::string, uint32_t>>>(list)) {
    const std::optional<ChunkFilter> filter = chunk_filter_named(name);
    if (!filter) check(unsupported(fmt::format("there is no filter '{}'", name)));
    chain.push_back({*filter, parameter});
  }
  return chain;
}

// HDF5: (bytes of a record, where in it, how many of the last axes).
RecordPlace record_of(nb::handle tuple) {
  const auto [bytes, offset, axes] = nb::cast<std::tuple<uint64_t, uint64_t, uint32_t>>(tuple);
  return {bytes, offset, axes};
}

TextEnd text_end_of(const std::string& name) {
  if (name == "first nul") return TextEnd::kFirstNul;
  if (name == "nuls") return TextEnd::kNuls;
  return name == "blanks" ? TextEnd::kBlanks : TextEnd::kNone;
}

std::shared_ptr<Array> array_of(nb::handle d) {
  auto out = std::make_shared<Array>();
  out->name = get<std::string>(d, "name");
  out->dtype = parse_dtype(get<std::string>(d, "dtype"));
  out->big_endian = get<bool>(d, "big_endian");
  out->fortran = get<bool>(d, "fortran");
  out->shape = get<Extents>(d, "shape");
  out->chunk = get<Extents>(d, "chunk");
  out->fill = bytes_of(d, "fill");
  out->filters = chain_of(d["filters"]);
  const auto places = get<Places>(d, "places");
  for (size_t i = 0; i < places.shape(0); ++i)
    out->places.push_back({static_cast<uint32_t>(places(i, 0)), static_cast<uint32_t>(places(i, 1)),
                           places(i, 2), places(i, 3)});
  out->packed = get<bool>(d, "packed");
  out->scale = get<double>(d, "scale");
  out->offset = get<double>(d, "offset");
  out->missing = get<std::optional<double>>(d, "missing");
  if (has(d, "also_missing")) out->also_missing = get<std::vector<double>>(d, "also_missing");
  if (has(d, "layer")) {
    const auto [axis, extent, index] = nb::cast<std::tuple<size_t, int64_t, int64_t>>(d["layer"]);
    out->layer = {axis, extent, index};
  }
  if (has(d, "record")) out->record = record_of(d["record"]);
  if (has(d, "crc")) {
    const auto [before, all] = nb::cast<std::pair<uint32_t, uint32_t>>(d["crc"]);
    out->sum = MemberSum{before, all};
  }
  if (has(d, "literal")) out->literal = bytes_of(d, "literal");
  if (has(d, "text_end")) out->text_end = text_end_of(get<std::string>(d, "text_end"));
  return out;
}

// Values that are held as they are: their bytes, one after the other, and the length of each.
std::shared_ptr<const ValueTable> literal_values(nb::handle d) {
  auto out = std::make_shared<ValueTable>();
  out->literal = bytes_of(d, "literal");
  for (const uint64_t bytes : get<std::vector<uint64_t>>(d, "lengths")) {
    out->extents.push_back({out->total_bytes, bytes});
    out->total_bytes += bytes;
  }
  return out;
}

// Finds the values of variable length of an array, on all processors.
std::shared_ptr<const ValueTable> values_of(nb::handle d, const std::vector<std::string>& files,
                                            const Store& store) {
  if (has(d, "literal")) return literal_values(d);
  if (has(d, "by_number")) {
    auto table = std::make_shared<ValueTable>();
    table->file = get<uint32_t>(d, "file");
    table->by_number = true;
    return table;
  }
  if (has(d, "flat")) {
    const std::shared_ptr<const Array> flat = array_of(d["flat"]);
    const std::shared_ptr<const Array> offsets = array_of(d["offsets"]);
    for (const ChunkPlace& place : flat->places)
      if (place.stored != 0 && place.file >= files.size())
        check(internal("values in a file that is not listed"));
    return unwrap(read_flat_values(*flat, *offsets, files, store));
  }
  HeapValues values{.references = *array_of(d["references"])};
  values.item_bytes = get<uint32_t>(d, "item_bytes");
  values.file = get<uint32_t>(d, "file");
  values.form.address_bytes = get<uint32_t>(d, "address_bytes");
  values.form.size_bytes = get<uint32_t>(d, "size_bytes");
  values.form.base = get<uint64_t>(d, "base");
  for (const ChunkPlace& place : values.references.places)
    if (place.stored != 0 && place.file >= files.size())
      check(internal("references in a file that is not listed"));
  Result<std::shared_ptr<const ValueTable>> found = internal("not looked for");
  {
    nb::gil_scoped_release release;
    found = [&]() -> Result<std::shared_ptr<const ValueTable>> {
      if (values.file >= files.size()) return internal("a heap in a file that is not listed");
      HEADRACE_ASSIGN(const FileInfo info, store.stat(files[values.file]));
      values.form.file_bytes = info.bytes;
      return read_heap_values(
          values, files, store, [](size_t count, const std::function<Status(size_t)>& job) {
            return parallel_for(count, static_cast<unsigned>(usable_cpus()), job);
          });
    }();
  }
  return unwrap(std::move(found));
}

ArrayField field_of(nb::handle d) {
  ArrayField out{.name = get<std::string>(d, "name")};
  out.variables = get<std::vector<uint32_t>>(d, "variables");
  out.from = get<int64_t>(d, "from");
  out.count = get<int64_t>(d, "count");
  if (has(d, "step")) out.step = get<int64_t>(d, "step");
  if (has(d, "kind")) {
    const auto kind = get<std::string>(d, "kind");
    out.kind = kind == "text" ? Kind::kText : kind == "bytes" ? Kind::kBytes : Kind::kArray;
  }
  using Axis = std::tuple<std::vector<int64_t>, int64_t, bool>;
  for (const auto& [indexes, patch, periodic] : get<std::vector<Axis>>(d, "axes"))
    out.axes.push_back({indexes, patch, periodic});
  return out;
}

// Names of files need not be UTF-8.
std::vector<std::string> files_of(nb::handle list) {
  std::vector<std::string> out;
  for (nb::handle name : list) {
    const auto bytes = nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(name.ptr()));
    if (!bytes.is_valid()) throw nb::python_error();
    out.emplace_back(bytes.c_str(), bytes.size());
  }
  return out;
}

using Sizes = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// What is known of an array's files.
void read_sizes(nb::handle array, ArrayDescription& out) {
  if (!has(array, "file_bytes")) return;
  const auto sizes = get<Sizes>(array, "file_bytes");
  const auto first = get<size_t>(array, "first_file");
  out.file_bytes.resize(out.files.size(), kWholeFile);
  if (first > out.files.size() || sizes.size() > out.files.size() - first)
    check(internal("sizes of files that are not listed"));
  std::copy(sizes.data(), sizes.data() + sizes.size(),
            out.file_bytes.begin() + static_cast<std::ptrdiff_t>(first));
}

// Rows of (position, corner of the patch).
using Starts = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void read_starts(const Starts& rows, ArraySamples& out) {
  for (size_t i = 0; i < rows.shape(0); ++i) {
    out.starts.push_back(rows(i, 0));
    for (size_t k = 1; k < rows.shape(1); ++k) out.corners.push_back(rows(i, k));
  }
}

}  // namespace

ArrayDescription description_of(nb::handle d, const Store& store) {
  ArrayDescription out;
  out.files = files_of(d["files"]);
  std::vector<std::shared_ptr<const Array>> arrays;
  for (nb::handle a : d["arrays"]) {
    const std::shared_ptr<Array> array = array_of(a);
    read_sizes(a, out);
    if (has(a, "values")) array->values = values_of(a["values"], out.files, store);
    arrays.push_back(array);
  }
  for (const auto& array : arrays)
    for (const ChunkPlace& place : array->places)
      if (place.stored != 0 && place.file >= out.files.size())
        check(internal("a chunk in a file that is not listed"));
  for (nb::handle v : d["variables"]) {
    Variable variable{.name = get<std::string>(v, "name")};
    variable.dims = get<std::vector<std::string>>(v, "dims");
    for (const size_t n : get<std::vector<size_t>>(v, "segments"))
      variable.segments.push_back(arrays.at(n));
    variable.along = get<std::optional<size_t>>(v, "along");
    out.variables.push_back(std::move(variable));
  }
  for (nb::handle f : d["fields"]) out.fields.push_back(field_of(f));
  if (has(d, "starts")) read_starts(get<Starts>(d, "starts"), out.samples);
  out.samples.end = get<int64_t>(d, "end");
  out.samples.stride = get<int64_t>(d, "stride");
  out.samples.tiled = get<bool>(d, "tiled");
  if (has(d, "names")) {
    out.samples.cases = true;
    out.samples.names = get<std::vector<std::string>>(d, "names");
  }
  if (has(d, "labels")) {
    out.samples.share = get<double>(d, "share");
    for (nb::handle classes : d["labels"]) {
      LabelPlaces& places = out.samples.labels.emplace_back();
      for (nb::handle one : classes) {
        const auto rows = nb::cast<Starts>(one);
        places.classes.emplace_back(rows.data(), rows.data() + rows.size());
      }
    }
  }
  return out;
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
  out.source = unwrap(make_array_source(description_of(d, *store), store));
  out.format = get<std::string>(d, "format");
  out.notices = get<std::vector<std::string>>(d, "notices");
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
    found = headrace::find_labels(description, variable, axes, *store,
                                  [](size_t count, const std::function<Status(size_t)>& job) {
                                    return parallel_for(count, static_cast<unsigned>(usable_cpus()),
                                                        job);
                                  });
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

// What array a .npy file holds and where it begins.
nb::dict npy_file(const std::string& path) {
  const auto [store, place] = unwrap(open_store(path));
  const FileInfo info = unwrap(store->stat(place));
  Buffer head;
  check(store->read_at(place, 0, std::min<uint64_t>(info.bytes, kNpyStart), head));
  const Result<uint64_t> bytes = npy_header_bytes(head.bytes());
  if (!bytes.ok()) check(bytes.status().in_file(path));
  check(store->read_at(place, 0, std::min(info.bytes, bytes.value()), head));
  return npy_dict(parse_npy(head.bytes(), info.bytes), path);
}

// Likewise, of a member of `path` that begins with `head` and has `total` bytes.
nb::dict npy_member(const std::string& path, nb::bytes head, uint64_t total) {
  const Bytes bytes = as_bytes(std::string_view(head.c_str(), head.size()));
  const Result<uint64_t> wanted = npy_header_bytes(bytes);
  if (!wanted.ok()) check(wanted.status().in_file(path));
  if (wanted.value() > bytes.size())
    check(corrupt("the header of an array is cut short").in_file(path));
  return npy_dict(parse_npy(bytes, total), path);
}

// The variables of a classic NetCDF file and where they lie.
// (type, bytes as they lie in the file) of each; the type of texts is "".
nb::dict netcdf_attributes(const std::vector<NetcdfAttribute>& attributes) {
  nb::dict out;
  for (const NetcdfAttribute& a : attributes) {
    const auto text = as_text(a.values);
    out[to_str(a.name)] = nb::make_tuple(a.dtype ? to_str(dtype_name(*a.dtype)) : to_str(""),
                                         nb::bytes(text.data(), text.size()));
  }
  return out;
}

nb::tuple netcdf_file(const std::string& path) {
  const OpenedUrl at = unwrap(open_store(path));
  const NetcdfFile file = unwrap(read_netcdf_classic(*at.store, at.path));
  nb::list dimensions;
  for (const std::string& name : file.dimensions) dimensions.append(to_str(name));
  nb::list out;
  for (const NetcdfVariable& v : file.variables) {
    nb::dict d;
    d["name"] = to_str(v.name);
    nb::list dims;
    for (const size_t n : v.dims) dims.append(dimensions[n]);
    d["dims"] = dims;
    d["shape"] = nb::cast(v.shape);
    d["dtype"] = v.dtype ? to_str(dtype_name(*v.dtype)) : to_str("");
    d["attributes"] = netcdf_attributes(v.attributes);
    d["has_records"] = v.has_records;
    d["begin"] = v.begin;
    d["bytes"] = v.bytes;
    d["stride"] = v.stride;
    out.append(d);
  }
  return nb::make_tuple(out, netcdf_attributes(file.attributes));
}

}  // namespace

void bind_array_source(nb::module_& m) {
  m.def("open_arrays", &open_arrays);
  m.def("array_stats", &array_stats, nb::arg("description"), nb::arg("variable"),
        nb::arg("per").none(), nb::arg("threads"), nb::arg("progress").none());
  m.def("find_labels", &find_labels);
  m.def("cached_sidecar", &cached_sidecar_of);
  m.def("npy_file", &npy_file);
  m.def("npy_member", &npy_member);
  m.def("netcdf_file", &netcdf_file);
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
