// SPDX-License-Identifier: Apache-2.0
#include "array/zarr_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "storage/folder.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// Sizes that one job asks for: some milliseconds of work.
constexpr size_t kFilesInAJob = 1024;
// Where the last axis has no more chunks than this, its folders are not listed: a stat of each file
// that may be there costs less.
constexpr int64_t kFew = 4;

// A folder on the way to files, or with files in it.
struct Level {
  std::string path;
  uint64_t first = 0;  // number of its first chunk, counted in what is left of the grid
  std::vector<Folder::Identity> above;
  std::vector<uint64_t> found;  // chunks that may be files of it
};

// One thread at a time; the jobs that it runs write to what is theirs alone.
class Listing {
 public:
  Listing(const Store& store, const ZarrKeys& keys, const RunJobs& run,
          std::vector<FileInfo>* looked_at)
      : store_(store),
        keys_(keys),
        run_(run),
        is_flat_(keys.separator != '/' || keys.grid.empty()),
        looked_at_(looked_at) {
    if (is_flat_) return;
    const size_t axes = keys.grid.size();
    listed_axis_ = axes > 1 && keys.grid.back() <= kFew ? axes - 2 : axes - 1;
  }

  Result<std::vector<ZarrFile>> run(const std::string& folder) {
    std::vector<Level> level(1);
    level[0].path = folder;
    if (!is_flat_) {
      if (!keys_.lead.empty()) level[0].path += '/' + keys_.lead;
      for (size_t axis = 0; axis < listed_axis_; ++axis) {
        HEADRACE_ASSIGN(level, below(level, axis));
      }
    }
    HEADRACE_TRY(run_(level.size(), [&](size_t i) { return find_files(level[i]); }));
    return with_sizes(level);
  }

 private:
  // The folders of the next axis.
  Result<std::vector<Level>> below(std::vector<Level>& level, size_t axis) {
    std::vector<std::vector<Level>> found(level.size());
    HEADRACE_TRY(
        run_(level.size(), [&](size_t i) { return find_folders(level[i], axis, found[i]); }));
    std::vector<Level> out;
    for (std::vector<Level>& some : found)
      std::move(some.begin(), some.end(), std::back_inserter(out));
    return out;
  }

  // Lists one folder; no entries where there is none.
  Status visit(Level& level, const std::function<void(std::string_view, EntrySort)>& entry) const {
    note(level.path);
    const Result<Folder> folder = Folder::open(level.path);
    if (!folder.ok()) return folder.status().code() == Code::kNotFound ? Status() : folder.status();
    HEADRACE_ASSIGN(const Folder::Identity self, folder.value().identity());
    if (std::find(level.above.begin(), level.above.end(), self) != level.above.end())
      return corrupt("the folder is a link to one above it: remove the link").in_file(level.path);
    level.above.push_back(self);
    const Status status = folder.value().visit(entry);
    return status.ok() ? status : status.in_file(level.path);
  }

  // Before it is listed: what changes meanwhile shows later.
  void note(const std::string& folder) const {
    if (looked_at_ == nullptr) return;
    Result<FileInfo> info = store_.stat(folder);
    if (!info.ok()) info = FileInfo{.path = folder};  // it is not there yet
    MutexLock lock(mu_);
    looked_at_->push_back(info.value());
  }

  Status find_folders(Level& level, size_t axis, std::vector<Level>& out) const {
    const auto extent = static_cast<uint64_t>(keys_.grid[axis]);
    HEADRACE_TRY(visit(level, [&](std::string_view name, EntrySort sort) {
      if (sort != EntrySort::kFolder && sort != EntrySort::kMaybe) return;
      const std::optional<uint64_t> index = zarr_index(name, keys_.grid[axis]);
      if (index)
        out.push_back({level.path + '/' + std::string(name), level.first * extent + *index});
    }));
    for (Level& next : out) next.above = level.above;
    return {};
  }

  // Files of the folder, or those that its folders may have.
  Status find_files(Level& level) const {
    if (is_flat_)
      return visit(level, [&](std::string_view name, EntrySort sort) {
        if (sort != EntrySort::kFile && sort != EntrySort::kMaybe) return;
        if (const auto chunk = zarr_chunk_named(name, keys_)) level.found.push_back(*chunk);
      });
    const bool asks = listed_axis_ + 1 < keys_.grid.size();
    const EntrySort wanted = asks ? EntrySort::kFolder : EntrySort::kFile;
    const auto extent = static_cast<uint64_t>(keys_.grid[listed_axis_]);
    const auto each = static_cast<uint64_t>(asks ? keys_.grid.back() : 1);
    return visit(level, [&](std::string_view name, EntrySort sort) {
      if (sort != wanted && sort != EntrySort::kMaybe) return;
      const auto index = zarr_index(name, keys_.grid[listed_axis_]);
      if (index && asks) note(level.path + '/' + std::string(name));
      for (uint64_t k = 0; index && k < each; ++k)
        level.found.push_back((level.first * extent + *index) * each + k);
    });
  }

  // What a chunk is called from the folder that was listed.
  std::string name_of(uint64_t chunk) const {
    if (is_flat_) return zarr_key(keys_, chunk);
    const auto last = static_cast<uint64_t>(keys_.grid.back());
    if (listed_axis_ + 1 == keys_.grid.size()) return fmt::format("{}", chunk % last);
    return fmt::format("{}/{}", chunk / last % static_cast<uint64_t>(keys_.grid[listed_axis_]),
                       chunk % last);
  }

  Result<std::vector<ZarrFile>> with_sizes(const std::vector<Level>& levels) const {
    struct Job {
      const Level* level;
      size_t from, to;
      std::vector<ZarrFile> files;
    };
    std::vector<Job> jobs;
    for (const Level& level : levels)
      for (size_t at = 0; at < level.found.size(); at += kFilesInAJob)
        jobs.push_back({&level, at, std::min(level.found.size(), at + kFilesInAJob), {}});
    HEADRACE_TRY(run_(jobs.size(), [&](size_t j) -> Status {
      Job& job = jobs[j];
      HEADRACE_ASSIGN(const Folder folder, Folder::open(job.level->path));
      for (size_t i = job.from; i < job.to; ++i) {
        const uint64_t chunk = job.level->found[i];
        const std::string name = name_of(chunk);
        const Result<std::optional<uint64_t>> bytes = folder.file_bytes(name);
        if (!bytes.ok()) return bytes.status().in_file(job.level->path + '/' + name);
        if (bytes.value()) job.files.push_back({chunk, *bytes.value()});
      }
      return {};
    }));
    std::vector<ZarrFile> out;
    for (const Job& job : jobs) out.insert(out.end(), job.files.begin(), job.files.end());
    std::sort(out.begin(), out.end(),
              [](const ZarrFile& a, const ZarrFile& b) { return a.chunk < b.chunk; });
    return out;
  }

  const Store& store_;
  const ZarrKeys& keys_;
  const RunJobs& run_;
  const bool is_flat_;      // all files lie in one folder
  size_t listed_axis_ = 0;  // the last axis whose folders are listed
  mutable Mutex mu_;
  std::vector<FileInfo>* const looked_at_;  // under mu_; may be null
};

}  // namespace

std::optional<uint64_t> zarr_index(std::string_view text, int64_t extent) {
  if (text.empty() || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value >= static_cast<uint64_t>(extent)) return std::nullopt;
  return value;
}

std::optional<uint64_t> zarr_chunk_named(std::string_view name, const ZarrKeys& keys) {
  if (!keys.lead.empty()) {
    if (!name.starts_with(keys.lead)) return std::nullopt;
    name.remove_prefix(keys.lead.size());
    if (!keys.grid.empty()) {
      if (!name.starts_with('.')) return std::nullopt;
      name.remove_prefix(1);
    }
  }
  if (keys.grid.empty())
    return name == (keys.lead.empty() ? "0" : "") ? std::optional<uint64_t>(0) : std::nullopt;
  uint64_t chunk = 0;
  for (size_t axis = 0; axis < keys.grid.size(); ++axis) {
    const size_t end = axis + 1 == keys.grid.size() ? name.size() : name.find('.');
    if (end == std::string_view::npos) return std::nullopt;
    const std::optional<uint64_t> index = zarr_index(name.substr(0, end), keys.grid[axis]);
    if (!index) return std::nullopt;
    chunk = chunk * static_cast<uint64_t>(keys.grid[axis]) + *index;
    name.remove_prefix(std::min(name.size(), end + 1));
  }
  return chunk;
}

std::string zarr_key(const ZarrKeys& keys, uint64_t chunk) {
  if (keys.grid.empty()) return keys.lead.empty() ? "0" : keys.lead;
  std::string key;
  for (size_t axis = keys.grid.size(); axis-- > 0;) {
    const auto extent = static_cast<uint64_t>(keys.grid[axis]);
    const std::string index = fmt::format("{}", chunk % extent);
    chunk /= extent;
    key = key.empty() ? index : index + keys.separator + key;
  }
  return keys.lead.empty() ? key : keys.lead + keys.separator + key;
}

Result<std::vector<ZarrFile>> list_zarr_chunks(const Store& store, const std::string& folder,
                                               const ZarrKeys& keys, const RunJobs& run,
                                               std::vector<FileInfo>* looked_at) {
  uint64_t chunks = 1;
  for (const int64_t extent : keys.grid) {
    if (extent < 0) return internal("a grid of fewer than no chunks");
    if (extent == 0) return std::vector<ZarrFile>();
    if (chunks > UINT64_MAX / static_cast<uint64_t>(extent)) return internal("a grid beyond 2^64");
    chunks *= static_cast<uint64_t>(extent);
  }
  if (!scheme_of(folder).empty()) return list_far_chunks(store, folder, keys, run);
  return Listing(store, keys, run, looked_at).run(folder);
}

}  // namespace headrace
