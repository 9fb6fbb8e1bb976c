// SPDX-License-Identifier: Apache-2.0
//
// Zarr's chunk files and shards, found for headrace/arrays/zarr.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array/zarr_documents.h"
#include "array/zarr_listing.h"
#include "array/zarr_metadata.h"
#include "array/zarr_shards.h"
#include "base/parallel.h"
#include "convert.h"
#include "errors.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "tree_object.h"

namespace nb = nanobind;

namespace headrace::py {
namespace {

using Found = std::vector<uint64_t>;

nb::object as_numpy(Found numbers, std::vector<size_t> shape) {
  auto* held = new Found(std::move(numbers));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Found*>(p); });
  return nb::cast(
      nb::ndarray<nb::numpy, uint64_t>(held->data(), shape.size(), shape.data(), owner));
}

struct Chunks {
  std::vector<ZarrFile> found;
  std::vector<std::string> files;
  std::vector<ChunkPlace> places;
  std::vector<FileInfo> looked_at;  // folders, as they were before they were listed
};

Result<Chunks> find_chunks(const std::string& folder, const ZarrKeys& keys, const ShardForm* form) {
  HEADRACE_ASSIGN(const OpenedUrl at, open_store(folder));
  const std::shared_ptr<const Store>& store = at.store;
  const unsigned threads = waiting_threads(*store, at.path);
  const RunJobs run = [threads](size_t count, const std::function<Status(size_t)>& job) {
    return parallel_for(count, threads, job);
  };
  Chunks out;
  HEADRACE_ASSIGN(out.found, list_zarr_chunks(*store, at.path, keys, run, &out.looked_at));
  for (const ZarrFile& file : out.found)
    out.files.push_back(join_path(at.path, zarr_key(keys, file.chunk)));
  if (form != nullptr) {
    HEADRACE_ASSIGN(out.places, read_shard_indexes(*form, out.found, out.files, *store, run));
    return out;
  }
  out.places.resize(static_cast<size_t>(elements_in(keys.grid)));
  for (size_t i = 0; i < out.found.size(); ++i)
    out.places[out.found[i].chunk] = {static_cast<uint32_t>(i), 0, 0, kWholeFile};
  return out;
}

// (places of all chunks, the files that there are, the bytes of each, folders looked at). `shards`:
// (chunks of a shard along each axis, the grid of chunks, whether the index comes first, whether it
// has a checksum).
nb::tuple zarr_chunks(nb::handle folder, Extents grid, std::string lead,
                      const std::string& separator, nb::handle shards) {
  if (separator != "/" && separator != ".")
    check(corrupt("chunk keys are joined by '/' or '.', not by '" + separator + "'"));
  const std::string path = to_tree(folder).text();
  const ZarrKeys keys{std::move(grid), std::move(lead), separator[0]};
  ShardForm form{.shards = keys.grid};
  if (!shards.is_none()) {
    form.per_shard = nb::cast<Extents>(shards[0]);
    form.chunks = nb::cast<Extents>(shards[1]);
    form.at_start = nb::cast<bool>(shards[2]);
    form.is_checked = nb::cast<bool>(shards[3]);
  }
  Result<Chunks> found = internal("not looked for");
  {
    nb::gil_scoped_release release;
    found = find_chunks(path, keys, shards.is_none() ? nullptr : &form);
  }
  const Chunks chunks = unwrap(std::move(found));
  nb::list files;
  Found bytes;
  for (size_t i = 0; i < chunks.files.size(); ++i) {
    files.append(to_str(chunks.files[i]));
    bytes.push_back(chunks.found[i].bytes);
  }
  Found rows;
  rows.reserve(4 * chunks.places.size());
  for (const ChunkPlace& place : chunks.places)
    rows.insert(rows.end(), {place.file, place.skipped, place.offset, place.stored});
  const size_t count = bytes.size();
  nb::list looked_at;
  for (const FileInfo& info : chunks.looked_at)
    looked_at.append(nb::make_tuple(to_str(info.path), info.is_folder ? info.bytes : 0,
                                    info.modified_ns, info.is_folder));
  return nb::make_tuple(as_numpy(std::move(rows), {chunks.places.size(), 4}), files,
                        as_numpy(std::move(bytes), {count}), looked_at);
}

// (description, grid, lead, separator, shards as zarr_chunks() takes them) of one array, by its
// documents.
nb::tuple zarr_array(nb::handle name, const nb::bytes& document, nb::handle attributes) {
  const auto parsed = [](const nb::bytes& text) {
    return unwrap(Json::parse({text.c_str(), text.size()}));
  };
  const Json meta = parsed(document);
  std::optional<Json> said;
  if (!attributes.is_none()) said = parsed(nb::cast<nb::bytes>(attributes));
  const ZarrMetadata found =
      unwrap(zarr_metadata(to_tree(name).text(), meta, said ? &*said : nullptr));
  nb::object shards = nb::none();
  if (found.shard)
    shards = nb::make_tuple(nb::cast(found.shard->per_shard), nb::cast(found.shard->chunks),
                            found.shard->at_start, found.shard->is_checked);
  return nb::make_tuple(to_object(tree_of(found.array)), nb::cast(found.keys.grid), found.keys.lead,
                        std::string(1, found.keys.separator), shards);
}

}  // namespace

void bind_zarr(nb::module_& m) {
  m.def("zarr_array", &zarr_array, nb::arg("name"), nb::arg("document"),
        nb::arg("attributes").none());
  m.def("zarr_chunks", &zarr_chunks, nb::arg("folder"), nb::arg("grid"), nb::arg("lead"),
        nb::arg("separator"), nb::arg("shards").none());
}

}  // namespace headrace::py
