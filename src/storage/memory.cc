// SPDX-License-Identifier: Apache-2.0
#include "storage/memory.h"

#include <algorithm>

namespace headrace {

void MemoryStore::put(const std::string& path, std::vector<std::byte> bytes) {
  MutexLock lock(mu_);
  files_[path] = {std::make_shared<const std::vector<std::byte>>(std::move(bytes)), ++clock_};
}

void MemoryStore::put(const std::string& path, std::string_view text) {
  const Bytes b = as_bytes(text);
  put(path, std::vector<std::byte>(b.begin(), b.end()));
}

void MemoryStore::remove(const std::string& path) {
  MutexLock lock(mu_);
  files_.erase(path);
}

Result<MemoryStore::Entry> MemoryStore::find(std::string_view path) const {
  MutexLock lock(mu_);
  const auto it = files_.find(path);
  if (it == files_.end()) return not_found("no such file").in_file(path);
  return it->second;
}

Status MemoryStore::read_one(const ReadRequest& request) const {
  HEADRACE_ASSIGN(const Entry entry, find(request.path));
  const std::vector<std::byte>& all = *entry.bytes;
  const bool whole = request.length == kWholeFile;
  const uint64_t offset = whole ? 0 : request.offset;
  const uint64_t length = whole ? all.size() : request.length;
  // Compare without adding: both numbers come from an index.
  if (offset > all.size() || length > all.size() - offset)
    return corrupt("read past the end of the file").at(offset).in_file(request.path);
  request.into->resize(length);
  std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(offset), length, request.into->data());
  return {};
}

void MemoryStore::read(std::span<ReadRequest> requests) const {
  for (ReadRequest& request : requests) request.done(read_one(request));
}

Result<FileInfo> MemoryStore::stat(const std::string& path) const {
  if (const Result<Entry> entry = find(path); entry.ok())
    return FileInfo{path, entry.value().bytes->size(), entry.value().modified_ns, false};
  HEADRACE_TRY(list(path).status());
  return FileInfo{path, 0, 0, true};
}

Result<std::vector<FileInfo>> MemoryStore::list(const std::string& folder) const {
  const std::string prefix = folder.ends_with('/') ? folder : folder + '/';
  std::vector<FileInfo> entries;
  MutexLock lock(mu_);
  for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix);
       ++it) {
    const size_t slash = it->first.find('/', prefix.size());
    FileInfo entry{it->first.substr(0, slash), it->second.bytes->size(), it->second.modified_ns,
                   slash != std::string::npos};
    if (entry.is_folder) entry.bytes = 0, entry.modified_ns = 0;
    if (entries.empty() || entries.back().path != entry.path) entries.push_back(std::move(entry));
  }
  if (entries.empty()) return not_found("no such folder").in_file(folder);
  std::sort(entries.begin(), entries.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
  return entries;
}

}  // namespace headrace
