// SPDX-License-Identifier: Apache-2.0
#include "open/index_places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/shown_url.h"
#include "index/sidecar.h"
#include "storage/paths.h"

namespace headrace {
namespace {

constexpr size_t kMostOfName = 120;

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody here sets it
  return value == nullptr ? "" : value;
}

// In the order of preference.
std::vector<std::string> candidates() {
  std::vector<std::string> out;
  if (std::string own = environment("HEADRACE_CACHE"); !own.empty()) out.push_back(std::move(own));
  for (const std::string& base :
       {environment("SLURM_TMPDIR"), environment("TMPDIR"), std::string("/tmp")})
    if (!base.empty()) out.push_back(fmt::format("{}/headrace-{}", base, ::geteuid()));
  std::string home = environment("XDG_CACHE_HOME");
  if (home.empty() && !environment("HOME").empty()) home = environment("HOME") + "/.cache";
  if (!home.empty()) out.push_back(home + "/headrace");
  return out;
}

// lstat: a link that someone else put there is not followed.
bool is_ours(const std::string& folder) {
  struct stat info{};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_usable(const std::string& folder) {
  return is_ours(folder) && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Result<std::string> cache_folder() {
  std::string tried;
  for (const std::string& folder : candidates()) {
    if (!is_ours(folder)) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
      ::mkdir(folder.c_str(), 0700);
    }
    if (is_usable(folder)) return folder;
    tried.append(tried.empty() ? "" : ", ").append(folder);
  }
  return Status(Code::kPermission,
                fmt::format("no folder for the cache can be written; tried: {}", tried));
}

std::string existing_cache_folder() {
  for (const std::string& folder : candidates())
    if (is_usable(folder)) return folder;
  return {};
}

void stamp_version(FileInfo& info) {
  if (info.version.empty() || info.version == version_of(info.bytes, info.modified_ns)) return;
  info.modified_ns =
      static_cast<int64_t>(Hasher().add(info.version).finish().low >> 2) | kVersionStamp;
}

std::string cached_sidecar(const std::string& folder, const FileInfo& shard) {
  std::error_code error;
  std::string text = without_signature(shard.path);  // which is another every time
  if (scheme_of(text).empty()) {
    const std::filesystem::path absolute = std::filesystem::absolute(shard.path, error);
    if (!error) text = absolute.lexically_normal().string();
  }
  // The end of a long name will do: the hash tells files apart.
  std::string_view end = base_name(without_query(text));
  end.remove_prefix(end.size() - std::min(end.size(), kMostOfName));
  const FileInfo name{.path = std::string(end), .part = shard.part};
  return fmt::format("{}/{}-{}", folder, Hasher().add(text).finish().hex(), sidecar_path(name));
}

// False where there are no locks.
Result<bool> BuildLock::wait_for(int fd, const std::atomic<bool>* cancel) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return false;
    if (cancel != nullptr && cancel->load())
      return cancelled("waiting for another process' index was cancelled");
    // flock() has no wait that Ctrl-C could end from another thread; 20 ms is nothing beside a
    // build.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

Result<std::unique_ptr<BuildLock>> BuildLock::acquire(const std::string& path,
                                                      const std::atomic<bool>* cancel) {
  if (!scheme_of(path).empty()) return acquire_in_cache(path, cancel);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::unique_ptr<BuildLock> lock(new BuildLock(fd));
  if (fd < 0) return lock;
  HEADRACE_ASSIGN(const bool locked, wait_for(fd, cancel));
  return locked ? std::move(lock) : std::unique_ptr<BuildLock>(new BuildLock(-1));
}

Result<std::unique_ptr<BuildLock>> BuildLock::acquire_in_cache(const std::string& url,
                                                               const std::atomic<bool>* cancel) {
  std::unique_ptr<BuildLock> none(new BuildLock(-1));
  const Result<std::string> cache = cache_folder();
  if (!cache.ok()) return none;
  const std::string file = cached_sidecar(cache.value(), FileInfo{.path = url}) + ".lock";
  while (true) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return none;
    const BuildLock closes(fd);
    HEADRACE_ASSIGN(const bool locked, wait_for(fd, cancel));
    if (!locked) return none;
    struct stat info{};
    if (::fstat(fd, &info) != 0) return none;
    // Without a name: the one that had it has removed it, and a lock on it keeps nobody out.
    if (info.st_nlink == 0) continue;
    return std::unique_ptr<BuildLock>(new BuildLock(::fcntl(fd, F_DUPFD_CLOEXEC, 0), file));
  }
}

BuildLock::~BuildLock() {
  if (fd_ < 0) return;
  if (!made_.empty()) ::unlink(made_.c_str());  // before the lock is let go
  ::close(fd_);
}

std::string keep_index(const FileInfo& shard,
                       const std::function<Status(const std::string& path)>& write) {
  const bool is_far = !scheme_of(shard.path).empty();
  const Status beside =
      is_far ? unsupported("the data are not on this machine") : write(sidecar_path(shard));
  if (beside.ok()) return {};
  const Result<std::string> cache = cache_folder();
  const Status cached = cache.ok() ? write(cached_sidecar(cache.value(), shard)) : cache.status();
  if (!cached.ok())
    return fmt::format("the index cannot be kept ({}; {}): it is built at every start",
                       beside.text(), cached.text());
  return fmt::format("the index cannot lie beside the data ({}): it is kept in {}", beside.text(),
                     cache.value());
}

}  // namespace headrace
