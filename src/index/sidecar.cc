// SPDX-License-Identifier: Apache-2.0
#include "index/sidecar.h"

#include <algorithm>

#include "base/hash.h"
#include "storage/open_store.h"
#include "storage/paths.h"

namespace headrace {

std::string sidecar_path(const FileInfo& shard) {
  if (shard.part.empty()) return sidecar_path(shard.path);
  std::string part = shard.part;
  std::replace(part.begin(), part.end(), '/', ',');
  return sidecar_path(shard.path + '#' + part);
}

FolderStamp stamp_of_beside(std::string name, const FileInfo& info) {
  const std::string version =
      info.version.empty() ? version_of(info.bytes, info.modified_ns) : info.version;
  return {std::move(name), static_cast<int64_t>(Hasher().add(version).finish().low >> 1)};
}

namespace {

bool files_beside_are_current(const PartHead& head, const FileInfo& shard, const Store& store) {
  // Of parts that were written before they named the file: nobody can tell.
  if (head.folders.empty()) return head.format != "litdata";
  return std::all_of(head.folders.begin(), head.folders.end(), [&](const FolderStamp& file) {
    const Result<FileInfo> now = store.stat(join_path(parent_folder(shard.path), file.path));
    return now.ok() && stamp_of_beside(file.path, now.value()) == file;
  });
}

}  // namespace

bool is_current(const Part& part, const FileInfo& shard, const Store& store) {
  const PartHead& head = part.head();
  if (!shard.is_folder)
    return head.shard_bytes == shard.bytes && head.modified_ns == shard.modified_ns &&
           files_beside_are_current(head, shard, store);
  if (head.folders.empty()) return false;
  return std::all_of(head.folders.begin(), head.folders.end(), [&](const FolderStamp& folder) {
    const Result<FileInfo> now = folder.path.empty()
                                     ? Result<FileInfo>(shard)
                                     : store.stat(join_path(shard.path, folder.path));
    // Folders without a time, as in an object store, may have changed.
    return now.ok() && now.value().is_folder && folder.modified_ns != 0 &&
           now.value().modified_ns == folder.modified_ns;
  });
}

Result<PartPointer> read_sidecar(const std::shared_ptr<const Store>& store, const std::string& path,
                                 const FileInfo& shard, const Store& data, uint64_t memory_bytes) {
  HEADRACE_ASSIGN(const FileInfo info, store->stat(path));
  PartPointer part;
  if (info.bytes <= memory_bytes) {
    HEADRACE_ASSIGN(Buffer bytes, store->read_all(path));
    HEADRACE_ASSIGN(part, Part::parse(std::move(bytes)));
  } else {
    HEADRACE_ASSIGN(part, Part::open(store, path, 0, info.bytes));
  }
  if (!is_current(*part, shard, data))
    return not_found("the shard has changed since it was indexed");
  return part;
}

Status write_sidecar(const std::string& path, const Part& part) {
  if (part.bytes().empty()) return internal("only a part in memory can be written");
  return write_url(path, part.bytes());
}

}  // namespace headrace
