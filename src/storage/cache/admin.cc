// SPDX-License-Identifier: Apache-2.0
//
// What `headrace cache ls | verify | clear` does.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/buffer.h"
#include "storage/cache/cache.h"

namespace headrace {
namespace {

Result<SegmentName> name_of(const CachedFile& file) {
  HEADRACE_ASSIGN(const OpenFile opened, open_descriptor(file.path));
  return read_segment_name(opened->fd());
}

// Every block that has a record, against it.
Status verify_segment(const CacheFolder& folder, const CachedFile& file, CacheCheck& check) {
  HEADRACE_ASSIGN(SegmentName name, name_of(file));
  if (name.shape != folder.shape() || name.object != file.object ||
      name.number * name.shape.segment_bytes() >= name.object_bytes)
    return corrupt("its head is not that of its name");
  const Segment segment(file.path, std::move(name));
  const Descriptors files(1);
  Buffer block;
  for (uint32_t b = 0; b < segment.blocks(); ++b) {
    if (!segment.has(files, b)) continue;
    block.resize(segment.block_bytes(b));
    const uint64_t begin = uint64_t{b} * folder.shape().block_bytes;
    if (segment.read(files, begin, block.span(), false) != Segment::Found::kRead)
      return corrupt(fmt::format("block {} is not what was written", b));
    ++check.blocks;
    check.bytes += block.size();
  }
  return {};
}

}  // namespace

Result<std::vector<CachedObject>> list_cache(const std::string& folder) {
  HEADRACE_ASSIGN(const auto opened, CacheFolder::open_existing(folder));
  HEADRACE_ASSIGN(const std::vector<CachedFile> files, opened->scan());
  std::map<std::pair<uint64_t, uint64_t>, CachedObject> objects;
  for (const CachedFile& file : files) {
    CachedObject& object = objects[{file.object.high, file.object.low}];
    object.cached_bytes += file.bytes;
    object.used_ns = std::max(object.used_ns, file.used_ns);
    if (!object.name.empty()) continue;
    const Result<SegmentName> name = name_of(file);
    object.object_bytes = name.ok() ? name.value().object_bytes : 0;
    object.name = name.ok() ? name.value().text.substr(0, name.value().text.find('\n'))
                            : "(" + name.status().text() + ")";
  }
  std::vector<CachedObject> out;
  for (auto& [key, object] : objects) out.push_back(std::move(object));
  std::sort(out.begin(), out.end(),
            [](const CachedObject& a, const CachedObject& b) { return a.name < b.name; });
  return out;
}

Result<CacheCheck> verify_cache(const std::string& folder) {
  HEADRACE_ASSIGN(const auto opened, CacheFolder::open_existing(folder));
  HEADRACE_ASSIGN(const std::vector<CachedFile> files, opened->scan());
  CacheCheck out;
  for (const CachedFile& file : files) {
    ++out.files;
    const Status status = verify_segment(*opened, file, out);
    if (status.ok() || status.code() == Code::kNotFound) continue;  // evicted meanwhile
    out.damaged.push_back(fmt::format("{}: {}", file.path, status.message()));
    (void)opened->remove(file);
  }
  return out;
}

std::string index_in_cache(const std::string& folder) {
  return folder + "/index";
}

Result<uint64_t> clear_cache(const std::string& folder) {
  HEADRACE_ASSIGN(const auto opened, CacheFolder::open_existing(folder));
  HEADRACE_ASSIGN(const std::vector<CachedFile> files, opened->scan());
  uint64_t removed = 0;
  std::error_code error;
  const std::string indexes = index_in_cache(opened->path());
  for (const auto& entry : std::filesystem::directory_iterator(indexes, error)) {
    if (entry.path().extension() != ".hridx") continue;
    const uint64_t bytes = entry.file_size(error);
    if (::unlink(entry.path().c_str()) == 0) removed += bytes;
  }
  ::rmdir(indexes.c_str());
  for (const CachedFile& file : files)
    if (opened->remove(file)) removed += file.bytes;
  opened->remove_empty();
  return removed;
}

}  // namespace headrace
