// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "array/zarr_listing.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr size_t kAskedAtOnce = 1024;

struct FarFolder {
  std::string path;
  uint64_t first = 0;  // number of its first chunk, counted in what is left of the grid
};

// A listing may give sizes, or names alone.
bool has_size(const FileInfo& info) {
  return info.bytes != 0 || !info.version.empty();
}

std::string_view name_of(const FileInfo& entry) {
  std::string_view path = entry.path;
  while (path.ends_with('/')) path.remove_suffix(1);
  return base_name(path);
}

// One thread at a time; the jobs that it runs write to what is theirs alone.
class FarListing {
 public:
  FarListing(const Store& store, const std::string& folder, const ZarrKeys& keys,
             const RunJobs& run)
      : store_(store), folder_(folder), keys_(keys), run_(run) {}

  Result<std::vector<ZarrFile>> find() {
    std::vector<FarFolder> level{{folder_, 0}};
    const bool is_flat = keys_.separator != '/' || keys_.grid.empty();
    if (!is_flat) {
      if (!keys_.lead.empty()) level[0].path = join_path(folder_, keys_.lead);
      for (size_t axis = 0; axis + 1 < keys_.grid.size(); ++axis) {
        HEADRACE_ASSIGN(level, below(level, axis));
      }
    }
    std::vector<std::vector<ZarrFile>> files(level.size());
    HEADRACE_TRY(run_(level.size(), [&](size_t i) -> Status {
      HEADRACE_ASSIGN(const std::vector<FileInfo> entries, list(level[i].path));
      for (const FileInfo& entry : entries) {
        if (entry.is_folder) continue;
        const std::optional<uint64_t> chunk =
            is_flat ? zarr_chunk_named(name_of(entry), keys_) : last_index(entry, level[i].first);
        if (chunk) files[i].push_back({*chunk, has_size(entry) ? entry.bytes : kWholeFile});
      }
      return {};
    }));
    std::vector<ZarrFile> out;
    for (const std::vector<ZarrFile>& some : files) out.insert(out.end(), some.begin(), some.end());
    std::sort(out.begin(), out.end(),
              [](const ZarrFile& a, const ZarrFile& b) { return a.chunk < b.chunk; });
    return with_sizes(std::move(out));
  }

  // Whether the store lists the folder of the array.  A web server that lists none says of it that
  // it is not there, or not for everybody, as of a folder without chunks.
  Result<bool> may_list() const {
    const Status status = store_.list_page(folder_, "").status();
    const bool is_refused = status.code() == Code::kNotFound ||
                            status.code() == Code::kPermission ||
                            status.code() == Code::kUnsupported;
    if (!status.ok() && !is_refused) return status;
    return status.ok();
  }

  // Without a listing: every chunk that may be there.
  Result<std::vector<ZarrFile>> ask() {
    std::vector<ZarrFile> all(static_cast<size_t>(elements_in(keys_.grid)));
    for (size_t i = 0; i < all.size(); ++i) all[i] = {i, kWholeFile};
    return with_sizes(std::move(all));
  }

 private:
  std::optional<uint64_t> last_index(const FileInfo& entry, uint64_t first) const {
    const int64_t extent = keys_.grid.back();
    const std::optional<uint64_t> index = zarr_index(name_of(entry), extent);
    if (!index) return std::nullopt;
    return first * static_cast<uint64_t>(extent) + *index;
  }

  Result<std::vector<FileInfo>> list(const std::string& folder) const {
    Result<std::vector<FileInfo>> entries = store_.list(folder);
    if (!entries.ok() && entries.status().code() == Code::kNotFound) return std::vector<FileInfo>();
    return entries;
  }

  // The folders of the next axis.
  Result<std::vector<FarFolder>> below(const std::vector<FarFolder>& level, size_t axis) const {
    std::vector<std::vector<FarFolder>> found(level.size());
    const auto extent = static_cast<uint64_t>(keys_.grid[axis]);
    HEADRACE_TRY(run_(level.size(), [&](size_t i) -> Status {
      HEADRACE_ASSIGN(const std::vector<FileInfo> entries, list(level[i].path));
      for (const FileInfo& entry : entries) {
        const auto index =
            entry.is_folder ? zarr_index(name_of(entry), keys_.grid[axis]) : std::nullopt;
        if (index)
          found[i].push_back(
              {join_path(level[i].path, name_of(entry)), level[i].first * extent + *index});
      }
      return {};
    }));
    std::vector<FarFolder> out;
    for (std::vector<FarFolder>& some : found)
      std::move(some.begin(), some.end(), std::back_inserter(out));
    return out;
  }

  // Asks for the sizes that are not known; what is not there is left out.
  Result<std::vector<ZarrFile>> with_sizes(std::vector<ZarrFile> files) const {
    std::vector<size_t> asked;
    for (size_t i = 0; i < files.size(); ++i)
      if (files[i].bytes == kWholeFile) asked.push_back(i);
    const size_t jobs = (asked.size() + kAskedAtOnce - 1) / kAskedAtOnce;
    HEADRACE_TRY(run_(jobs, [&](size_t job) -> Status {
      const size_t begin = job * kAskedAtOnce;
      const size_t end = std::min(asked.size(), begin + kAskedAtOnce);
      std::vector<std::string> paths;
      for (size_t i = begin; i < end; ++i)
        paths.push_back(join_path(folder_, zarr_key(keys_, files[asked[i]].chunk)));
      std::vector<Result<FileInfo>> found = store_.stat_all(paths);
      for (size_t i = begin; i < end; ++i) {
        const Result<FileInfo>& info = found[i - begin];
        if (!info.ok() && info.status().code() != Code::kNotFound) return info.status();
        if (info.ok() && !info.value().is_folder) files[asked[i]].bytes = info.value().bytes;
      }
      return {};
    }));
    std::erase_if(files, [](const ZarrFile& file) { return file.bytes == kWholeFile; });
    return files;
  }

  const Store& store_;
  const std::string& folder_;
  const ZarrKeys& keys_;
  const RunJobs& run_;
};

}  // namespace

Result<std::vector<ZarrFile>> list_far_chunks(const Store& store, const std::string& folder,
                                              const ZarrKeys& keys, const RunJobs& run) {
  FarListing listing(store, folder, keys, run);
  HEADRACE_ASSIGN(const bool may_list, listing.may_list());
  return may_list ? listing.find() : listing.ask();
}

}  // namespace headrace
