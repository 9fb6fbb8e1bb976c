// SPDX-License-Identifier: Apache-2.0
#include "storage/memory.h"

#include <algorithm>

#include "storage/read_each.h"

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

namespace {

// Compare without adding: both numbers come from an index.
Result<Bytes> range_of(Bytes all, uint64_t offset, uint64_t length) {
  if (length == kWholeFile) return all;
  if (offset > all.size() || length > all.size() - offset)
    return corrupt("read past the end of the file").at(offset);
  return all.subspan(offset, length);
}

}  // namespace

Status MemoryStore::read_one(ReadRequest& request) const {
  HEADRACE_ASSIGN(const Entry entry, find(request.path));
  std::string version = version_of(entry.bytes->size(), entry.modified_ns);
  if (!request.version.empty() && request.version != version)
    return changed_file(request.version, version);
  HEADRACE_ASSIGN(const Bytes bytes, range_of(*entry.bytes, request.offset, request.length));
  request.version = std::move(version);
  return fill_request(request, bytes);
}

void MemoryStore::read(std::span<ReadRequest> requests) const {
  read_each(requests, [&](ReadRequest& request) { return read_one(request); });
}

StoreCost MemoryStore::cost(const std::string&) const {
  return {};
}

std::vector<Result<FileInfo>> MemoryStore::stat_all(std::span<const std::string> paths) const {
  std::vector<Result<FileInfo>> out;
  for (const std::string& path : paths) out.push_back(stat_one(path));
  return out;
}

Result<FileInfo> MemoryStore::stat_one(const std::string& path) const {
  if (const Result<Entry> entry = find(path); entry.ok()) {
    const Entry& e = entry.value();
    return FileInfo{.path = path,
                    .bytes = e.bytes->size(),
                    .modified_ns = e.modified_ns,
                    .version = version_of(e.bytes->size(), e.modified_ns)};
  }
  HEADRACE_TRY(list_page(path, "").status());
  return FileInfo{.path = path, .is_folder = true};
}

Result<ListPage> MemoryStore::list_page(const std::string& folder, const std::string& after) const {
  const std::string prefix = folder.ends_with('/') ? folder : folder + '/';
  ListPage page;
  std::vector<FileInfo>& entries = page.entries;
  {
    MutexLock lock(mu_);
    for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix);
         ++it) {
      const size_t slash = it->first.find('/', prefix.size());
      FileInfo entry{.path = it->first.substr(0, slash), .is_folder = slash != std::string::npos};
      if (!entry.is_folder) {
        entry.bytes = it->second.bytes->size();
        entry.modified_ns = it->second.modified_ns;
        entry.version = version_of(entry.bytes, entry.modified_ns);
      }
      if (entries.empty() || entries.back().path != entry.path) entries.push_back(std::move(entry));
    }
  }
  if (entries.empty()) return not_found("no such folder").in_file(folder);
  // "sub" of sub/x comes before sub.bin, which comes before sub/x.
  std::sort(entries.begin(), entries.end(),
            [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
  std::erase_if(entries, [&after](const FileInfo& e) { return !after.empty() && e.path <= after; });
  if (entries.size() > page_entries_) {
    entries.resize(page_entries_);
    page.next = entries.back().path;
  }
  return page;
}

}  // namespace headrace
