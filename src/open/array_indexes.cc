// SPDX-License-Identifier: Apache-2.0
#include "open/array_indexes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "array/array_index.h"
#include "array/zarr_documents.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "index/sidecar.h"
#include "open/expand.h"
#include "open/index_places.h"
#include "storage/open_store.h"
#include "storage/paths.h"
#include "storage/sink.h"

namespace headrace {
namespace {

// Of an index that was made on purpose so many files are looked at: a start at scale is one read.
constexpr size_t kLookedAt = 64;

// The first file, and what tells this data set from others that begin with it.
FileInfo named(const ArrayPlaces& places) {
  FileInfo out{.path = places.paths.front()};
  out.part = places.groups.front();
  if (places.paths.size() > 1) {
    Hasher hasher;
    const std::vector<std::string> names = relative_names(places.paths, false);
    for (size_t i = 0; i < names.size(); ++i) hasher.add(names[i]).add(places.groups[i]);
    out.part = fmt::format("{}-{}", names.size(), hasher.finish().hex().substr(0, 8));
  }
  if (!places.mode.empty()) out.part += "@" + places.mode;
  if (out.part.empty() && out.path.ends_with(".npz"))
    out.part = "arrays";  // records have the other
  return out;
}

// One alone may be called anything.
std::vector<std::string> names_of(const ArrayPlaces& places) {
  return places.paths.size() == 1 ? std::vector<std::string>{""}
                                  : relative_names(places.paths, false);
}

// What kind of storage the times of the index are of: those of another tell nothing.
std::string kind_of_times(const ArrayPlaces& places) {
  const std::string_view scheme = scheme_of(places.paths.front());
  return scheme.empty() ? "file" : std::string(scheme);
}

Status name_entries(const ArrayPlaces& places, Tree& index) {
  const Tree* entries = index.find("entries");
  if (entries == nullptr || entries->items().size() != places.paths.size())
    return internal("an index of other files");
  const std::vector<std::string> names = names_of(places);
  Tree out = Tree::list();
  for (Tree entry : entries->items()) {
    const size_t i = out.items().size();
    entry.set("path", Tree(names[i]));
    entry.set("group", Tree(places.groups[i]));
    out.add(std::move(entry));
  }
  index.set("mode", Tree(places.mode));
  index.set("times", Tree(kind_of_times(places)));
  index.set("entries", std::move(out));
  return {};
}

// Whether the entries are of these places, in this order.
bool is_of(const Tree& index, const ArrayPlaces& places) {
  const std::vector<Tree>& entries = index.find("entries")->items();
  if (entries.size() != places.paths.size() || index.text_of("mode") != places.mode) return false;
  const std::vector<std::string> names = names_of(places);
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].text_of("path") != names[i] || entries[i].text_of("group") != places.groups[i])
      return false;
  return true;
}

Result<Tree> read_index(const Store& store, const std::string& path) {
  HEADRACE_ASSIGN(const FileInfo info, store.stat(path));
  if (info.is_folder) return not_found("is a folder").in_file(path);
  Buffer bytes;
  HEADRACE_TRY(store.read_at(path, 0, info.bytes, bytes));
  Result<Tree> parsed = parse_array_index(bytes.bytes());
  if (!parsed.ok()) return parsed.status().in_file(path);
  return parsed;
}

Status check_current(const Tree& index, const ArrayPlaces& places, const Store& data,
                     bool on_purpose) {
  const bool has_times = index.text_of("times") == kind_of_times(places);
  const Compared compared = !on_purpose ? Compared::kAll
                            : has_times ? Compared::kSome
                                        : Compared::kSizes;
  const std::vector<Tree>& entries = index.find("entries")->items();
  const unsigned threads = waiting_threads(data, places.paths.front());
  const size_t step = on_purpose ? std::max<size_t>(1, entries.size() / kLookedAt) : 1;
  const RunJobs alone = [](size_t count, const std::function<Status(size_t)>& job) {
    return parallel_for(count, 1, job);
  };
  const RunJobs many = [threads](size_t count, const std::function<Status(size_t)>& job) {
    return parallel_for(count, threads, job);
  };
  const size_t looks = (entries.size() + step - 1) / step;
  return many(looks, [&](size_t look) -> Status {
    const size_t i = look * step;
    if (is_current(entries[i], places.paths[i], data, looks == 1 ? many : alone, compared))
      return {};
    return corrupt(
               "has changed since it was indexed, in its size or its time: index the data set "
               "again (copies keep their times by cp -p or rsync -t)")
        .in_file(places.paths[i]);
  });
}

void resolve(Tree& index, const ArrayPlaces& places) {
  Tree entries = Tree::list();
  size_t i = 0;
  for (Tree entry : index.find("entries")->items()) {
    resolve_files(entry, places.paths[i++]);
    entries.add(std::move(entry));
  }
  index.set("entries", std::move(entries));
}

}  // namespace

Result<Tree> find_array_index(const ArrayPlaces& places, const std::string& folder) {
  if (places.paths.empty()) return invalid("no data set is named");
  HEADRACE_ASSIGN(const OpenedUrl data, open_store(places.paths.front()));
  if (!folder.empty()) {
    HEADRACE_ASSIGN(const OpenedUrl at, open_store(clean_path(folder)));
    const std::string path = join_path(at.path, kArrayIndexName);
    HEADRACE_ASSIGN(Tree index, read_index(*at.store, path));
    if (!is_of(index, places))
      return invalid("the index is of another data set: it names other files").in_file(path);
    HEADRACE_TRY(check_current(index, places, *data.store, true));
    resolve(index, places);
    return index;
  }
  const FileInfo shard = named(places);
  std::optional<Tree> found;
  if (Result<Tree> beside = read_index(*data.store, sidecar_path(shard)); beside.ok())
    found = std::move(beside).value();
  if (!found || !is_of(*found, places)) {
    found.reset();
    if (const std::string cache = existing_cache_folder(); !cache.empty()) {
      const OpenedUrl at = open_store(cached_sidecar(cache, shard)).value();
      if (Result<Tree> cached = read_index(*at.store, at.path); cached.ok())
        found = std::move(cached).value();
    }
  }
  if (!found || !is_of(*found, places)) return not_found("there is no index of it");
  HEADRACE_TRY(check_current(*found, places, *data.store, false));
  resolve(*found, places);
  return std::move(*found);
}

Result<std::string> keep_array_index(const ArrayPlaces& places, Tree index,
                                     const std::string& folder) {
  HEADRACE_TRY(name_entries(places, index));
  const std::vector<std::byte> bytes = pack_array_index(index);
  if (!folder.empty()) {
    const std::string to = clean_path(folder);
    std::error_code error;
    if (scheme_of(to).empty()) std::filesystem::create_directories(to, error);
    if (error) return from_errno(error.value(), "make folder").in_file(to);
    HEADRACE_TRY(write_url(join_path(to, kArrayIndexName), bytes));
    return std::string();
  }
  return keep_index(named(places),
                    [&](const std::string& path) { return write_file(path, bytes); });
}

}  // namespace headrace
