// SPDX-License-Identifier: Apache-2.0
#include "open/made_indexes.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "index/sidecar.h"
#include "open/index_places.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;  // a larger index is read by groups

// The first file, with what tells this data set from others that begin with it.  Its size and time
// stand for which files there are and who made the index; the part's stamps have those of each.
FileInfo shard_of(const MadePlaces& places) {
  Hasher hasher;
  for (const std::string& name : places.files) hasher.add(name);
  const Hash128 names = hasher.finish();
  FileInfo out{.path = join_path(places.root, places.files.front())};
  if (places.files.size() > 1)
    out.part = fmt::format("{}-{}", places.files.size(), names.hex().substr(0, 8));
  out.bytes = places.files.size();
  out.modified_ns = static_cast<int64_t>(
      Hasher().add(names.hex()).add(places.format).add(places.version).finish().low >> 1);
  return out;
}

// Stamps are relative to the folder of the shard: here to the root.
FileInfo at_root(const MadePlaces& places) {
  FileInfo out = shard_of(places);
  out.path = join_path(places.root, "files");
  return out;
}

}  // namespace

Status stamp_made_part(const MadePlaces& places, const std::vector<std::string>& files,
                       PartHead& head) {
  HEADRACE_ASSIGN(const OpenedUrl data, open_store(places.root));
  std::vector<std::string> paths;
  for (const std::string& name : files) paths.push_back(join_path(data.path, name));
  std::vector<Result<FileInfo>> found = data.store->stat_all(paths);
  for (size_t i = 0; i < files.size(); ++i) {
    HEADRACE_ASSIGN(const FileInfo info, std::move(found[i]));
    head.folders.push_back(stamp_of_beside(files[i], info));
  }
  const FileInfo shard = shard_of(places);
  head.shard_bytes = shard.bytes;
  head.modified_ns = shard.modified_ns;
  return {};
}

Result<PartPointer> find_made_part(const MadePlaces& places) {
  if (places.files.empty()) return invalid("no data set is named");
  HEADRACE_ASSIGN(const OpenedUrl data, open_store(places.root));
  MadePlaces opened = places;
  opened.root = data.path;
  const FileInfo stamped = at_root(opened);
  Result<PartPointer> part =
      read_sidecar(data.store, sidecar_path(shard_of(opened)), stamped, *data.store, kMemoryBytes);
  const std::string cache = existing_cache_folder();
  if (!part.ok() && !cache.empty()) {
    HEADRACE_ASSIGN(const OpenedUrl kept, open_store(cached_sidecar(cache, shard_of(places))));
    part = read_sidecar(kept.store, kept.path, stamped, *data.store, kMemoryBytes);
  }
  if (part.ok() && part.value()->head().format != places.format)
    return not_found("an index of another format");
  return part;
}

std::string keep_made_part(const MadePlaces& places, const Part& part) {
  return keep_index(shard_of(places),
                    [&](const std::string& path) { return write_sidecar(path, part); });
}

}  // namespace headrace
