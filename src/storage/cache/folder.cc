// SPDX-License-Identifier: Apache-2.0
#include "storage/cache/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <map>
#include <thread>

#include "base/entropy.h"
#include "base/per_process.h"
#include "storage/folder.h"
#include "trace/clock.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = "headrace-cache";
constexpr std::string_view kMarkerText = "headrace cache 1";
constexpr uint64_t kSecond_ns = 1'000'000'000;
constexpr int64_t kLeftBehind_s = 600;  // a temporary file is made in milliseconds

// A descriptor, with a lock on it where that was to be had.
class LockedFile {
 public:
  LockedFile(const std::string& path, int how) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    file_ = std::make_unique<const Descriptor>(fd);
    is_locked_ = ::flock(fd, how | LOCK_NB) == 0;
  }
  int fd() const { return file_ ? file_->fd() : -1; }
  bool is_locked() const { return is_locked_; }

 private:
  std::unique_ptr<const Descriptor> file_;
  bool is_locked_ = false;
};

Status refused(const std::string& path, std::string_view why) {
  return invalid(fmt::format("cache={}: {}", path, why));
}

Status check_owner(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return from_errno(errno, "stat").in_file(path);
  if (!S_ISDIR(info.st_mode)) return refused(path, "is a file, a folder is wanted");
  if (info.st_uid != ::geteuid())
    return refused(path, "belongs to another user; each user has a folder of their own");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refused(path, fmt::format("others may write there; run chmod 700 {}", path));
  return {};
}

// Anything but what a maker that was killed may have left.
bool holds_other_things(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "tmp" && name != "data" && name != "lost+found") return true;
  }
  return false;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The object of a segment's name; nothing of any other name.
std::optional<Hash128> object_of(std::string_view name) {
  Hash128 hash;
  if (name.size() < 34 || name[32] != '-' || !is_hex(name.substr(33)) ||
      !Hash128::parse(name.substr(0, 32), hash))
    return std::nullopt;
  return hash;
}

bool is_memory(const std::string& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 && int64_t{info.f_type} == TMPFS_MAGIC;
}

// So that even a small cache holds some dozens of blocks and segments.
CacheShape shape_for(uint64_t bytes) {
  if (bytes == 0) return {};
  const auto block =
      static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_floor(bytes / 64), 64 << 10, 1 << 20));
  const auto blocks =
      static_cast<uint32_t>(std::clamp<uint64_t>(bytes / block / 64, 1, kMostSegmentBlocks));
  return {block, blocks};
}

struct Users {
  Mutex mu;
  std::map<std::pair<uint64_t, uint64_t>, size_t> count HEADRACE_GUARDED_BY(mu);
};
Users& users() {
  static const PerProcess<Users> all([] { return std::make_unique<Users>(); });
  return *all;
}

}  // namespace

void CacheUsers::add(const Hash128& object) {
  MutexLock lock(users().mu);
  ++users().count[{object.high, object.low}];
}

void CacheUsers::remove(const Hash128& object) {
  MutexLock lock(users().mu);
  const auto it = users().count.find({object.high, object.low});
  if (it != users().count.end() && --it->second == 0) users().count.erase(it);
}

bool CacheUsers::has(const Hash128& object) {
  MutexLock lock(users().mu);
  return users().count.contains({object.high, object.low});
}

Result<std::unique_ptr<CacheFolder>> CacheFolder::open(const CacheOptions& options) {
  std::error_code error;
  const std::string path = fs::absolute(options.folder, error).lexically_normal().string();
  if (error) return from_errno(error.value(), "cache").in_file(options.folder);
  std::unique_ptr<CacheFolder> out(new CacheFolder(path));
  HEADRACE_TRY(out->adopt(options));
  out->scope_ = options.scope;
  out->set_limits(options);
  return out;
}

Result<std::unique_ptr<CacheFolder>> CacheFolder::open_existing(const std::string& folder) {
  std::error_code error;
  const std::string path = fs::absolute(folder, error).lexically_normal().string();
  std::unique_ptr<CacheFolder> out(new CacheFolder(path));
  HEADRACE_TRY(check_owner(path));
  HEADRACE_TRY(out->read_marker());
  return out;
}

Status CacheFolder::adopt(const CacheOptions& options) {
  std::error_code error;
  const fs::path parent = fs::path(path_).parent_path();
  if (!fs::exists(path_, error)) {
    fs::create_directories(parent, error);
    if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
      return from_errno(errno, "make the cache folder").in_file(path_);
  }
  HEADRACE_TRY(check_owner(path_));
  const auto has_marker = [marker = path_ + '/' + std::string(kMarker)] {
    return ::access(marker.c_str(), F_OK) == 0;
  };
  if (!has_marker()) {
    // Another process may have made it a cache meanwhile: the marker is its first file.
    if (holds_other_things(path_) && !has_marker())
      return refused(path_, "holds other files; give a folder that is empty or not there yet");
    if (::chmod(path_.c_str(), 0700) != 0) return from_errno(errno, "chmod").in_file(path_);
    HEADRACE_TRY(write_marker(options));
  }
  HEADRACE_TRY(read_marker());
  is_read_only_ = ::access(path_.c_str(), W_OK) != 0;
  if (is_read_only_)
    notices_.push_back(fmt::format("cache={}: may only be read; nothing is added to it", path_));
  return {};
}

Status CacheFolder::write_marker(const CacheOptions& options) {
  for (const char* sub : {"/tmp", "/data"})
    if (::mkdir((path_ + sub).c_str(), 0700) != 0 && errno != EEXIST)
      return from_errno(errno, "make the cache folder").in_file(path_);
  const CacheShape shape = shape_for(options.bytes);
  const std::string text = fmt::format("{}\nblock_bytes {}\nsegment_blocks {}\n", kMarkerText,
                                       shape.block_bytes, shape.segment_blocks);
  const std::string temporary = temporary_path();
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return from_errno(errno, "write").in_file(temporary);
  const Descriptor close(fd);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  Status status = written ? Status() : from_errno(errno == 0 ? ENOSPC : errno, "write");
  // Of two that make it at once the first wins: both then read the same.
  if (status.ok() && ::link(temporary.c_str(), (path_ + '/' + std::string(kMarker)).c_str()) != 0 &&
      errno != EEXIST)
    status = from_errno(errno, "link");
  ::unlink(temporary.c_str());
  return status.ok() ? status : status.in_file(path_);
}

Status CacheFolder::read_marker() {
  const std::string marker = path_ + '/' + std::string(kMarker);
  const int fd = ::open(marker.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return refused(path_, "is no cache of headrace");
  const Descriptor close(fd);
  std::array<char, 256> text{};
  const ssize_t n = ::read(fd, text.data(), text.size() - 1);
  if (n <= 0 || std::string_view(text.data()).substr(0, kMarkerText.size()) != kMarkerText ||
      std::sscanf(text.data() + kMarkerText.size(), "\nblock_bytes %u\nsegment_blocks %u",
                  &shape_.block_bytes, &shape_.segment_blocks) != 2)
    return refused(path_, "is a cache of another version of headrace; give another folder");
  if (!std::has_single_bit(shape_.block_bytes) || shape_.block_bytes < (64 << 10) ||
      shape_.block_bytes > (64 << 20) || shape_.segment_blocks < 1 ||
      shape_.segment_blocks > kMostSegmentBlocks)
    return refused(path_, "its file headrace-cache is damaged; remove the folder");
  return {};
}

void CacheFolder::set_limits(const CacheOptions& options) {
  struct statvfs info{};
  uint64_t size = 0;
  if (::statvfs(path_.c_str(), &info) == 0) size = uint64_t{info.f_blocks} * info.f_frsize;
  keep_free_ = options.keep_free >= 0 ? static_cast<uint64_t>(options.keep_free) : size / 20;
  if (options.bytes > 0) most_bytes_ = options.bytes;
  if (!is_memory(path_)) return;
  // What lies there is memory that the job cannot have.
  if (options.bytes == 0) most_bytes_ = size / 2;
  notices_.push_back(
      fmt::format("cache={}: lies in memory; up to {} MiB of it are taken from what this machine's "
                  "jobs may use",
                  path_, most_bytes_ >> 20));
}

std::string CacheFolder::segment_path(const Hash128& object, uint64_t number) const {
  const std::string hex = object.hex();
  return fmt::format("{}/data/{}/{}-{:x}", path_, hex.substr(0, 2), hex, number);
}

std::string CacheFolder::temporary_path() const {
  static std::atomic<uint64_t> numbers{0};
  static const uint64_t salt = entropy_word();
  return fmt::format("{}/tmp/{}-{:x}-{}", path_, ::getpid(), salt, numbers.fetch_add(1));
}

uint64_t CacheFolder::free_bytes() const {
  struct statvfs info{};
  if (::statvfs(path_.c_str(), &info) != 0) return ~uint64_t{0};
  return uint64_t{info.f_bavail} * info.f_frsize;
}

// Bytes that must go before so many more may come; 0: none.
uint64_t CacheFolder::shortage(uint64_t bytes) const {
  uint64_t used = 0;
  const std::string path = path_ + "/usage";
  if (const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
    const Descriptor close(fd);
    if (::pread(fd, &used, sizeof used, 0) != sizeof used) used = 0;
  }
  const uint64_t over = used + bytes > most_bytes_ ? used + bytes - most_bytes_ : 0;
  const uint64_t free = free_bytes();
  const uint64_t low = free < keep_free_ + bytes ? keep_free_ + bytes - free : 0;
  return std::max(over, low);
}

// False where it would pass the limit, or the file cannot be had: then nothing was changed.
bool CacheFolder::change_usage(int64_t by, bool within_limit) const {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const LockedFile file(path_ + "/usage", LOCK_EX);
    if (file.fd() < 0) return false;
    if (!file.is_locked()) {  // held for microseconds; a lock that waits could wait for a stopped
                              // process
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    uint64_t used = 0;
    if (::pread(file.fd(), &used, sizeof used, 0) != sizeof used) used = 0;
    const auto change = static_cast<uint64_t>(by < 0 ? -by : by);
    const uint64_t next = by < 0 ? used - std::min(used, change) : used + change;
    if (within_limit && next > most_bytes_) return false;
    return ::pwrite(file.fd(), &next, sizeof next, 0) == sizeof next;
  }
  return false;
}

bool CacheFolder::reserve(uint64_t bytes) const {
  if (is_read_only_ || steady_ns() < full_until_ns_.load()) return false;
  const uint64_t missing = shortage(bytes);
  if (missing > 0 && !evict(missing)) {
    full_until_ns_.store(steady_ns() + kSecond_ns);
    return false;
  }
  reserved_.fetch_add(bytes);
  const bool is_counted = change_usage(static_cast<int64_t>(bytes), true);
  if (!is_counted) reserved_.fetch_sub(bytes);
  return is_counted;
}

void CacheFolder::give_back(uint64_t bytes) const {
  (void)change_usage(-static_cast<int64_t>(bytes), false);
  reserved_.fetch_sub(bytes);
}

Result<std::vector<CachedFile>> CacheFolder::scan() const {
  const std::time_t now = std::time(nullptr);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_ + "/tmp", error)) {
    struct stat info{};
    if (::lstat(entry.path().c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        now - info.st_mtim.tv_sec > kLeftBehind_s)
      ::unlink(entry.path().c_str());
  }
  std::vector<CachedFile> out;
  for (const auto& sub : fs::directory_iterator(path_ + "/data", error)) {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(sub.path(), gone)) {
      const std::optional<Hash128> object = object_of(entry.path().filename().string());
      struct stat info{};
      if (!object || ::lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      out.push_back(
          {.path = entry.path().string(),
           .object = *object,
           .bytes = static_cast<uint64_t>(info.st_blocks) * 512,
           .used_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
    }
  }
  if (error) return from_errno(error.value(), "list").in_file(path_);
  return out;
}

bool CacheFolder::remove(const CachedFile& file) const {
  if (::unlink(file.path.c_str()) != 0) return false;
  (void)change_usage(-static_cast<int64_t>(file.bytes), false);
  return true;
}

void CacheFolder::remove_empty() const {
  std::error_code error;
  for (const auto& sub : fs::directory_iterator(path_ + "/data", error))
    ::rmdir(sub.path().c_str());
  // A process that fills it now finds no folder to make a file in, and reads from the source.
  if (::rmdir((path_ + "/data").c_str()) != 0) return;
  for (const auto& entry : fs::directory_iterator(path_ + "/tmp", error))
    ::unlink(entry.path().c_str());
  ::rmdir((path_ + "/tmp").c_str());
  for (const std::string name : {"usage", "evicting", "headrace-cache"})
    ::unlink((path_ + '/' + name).c_str());
  ::rmdir(path_.c_str());
}

// Counts what is there, and removes the oldest of it.
bool CacheFolder::evict(uint64_t bytes) const {
  const LockedFile lock(path_ + "/evicting", LOCK_EX);
  if (!lock.is_locked()) return false;
  uint64_t used = reserved_.load();  // which no file shows yet
  uint64_t before = 0;
  if (const int fd = ::open((path_ + "/usage").c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
    const Descriptor close(fd);
    if (::pread(fd, &before, sizeof before, 0) != sizeof before) before = 0;
  }
  Result<std::vector<CachedFile>> scanned = scan();
  if (!scanned.ok()) return false;
  std::vector<CachedFile>& files = scanned.value();
  for (const CachedFile& file : files) used += file.bytes;
  // By the difference: what others reserved meanwhile stays counted.
  (void)change_usage(static_cast<int64_t>(used) - static_cast<int64_t>(before), false);
  bytes -= std::min(bytes, before > used ? before - used : 0);
  if (bytes == 0) return true;
  std::sort(files.begin(), files.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.used_ns < b.used_ns; });
  // Some more than is needed: a scan for each block would cost more than the block.
  const uint64_t wanted = bytes + std::min(used, most_bytes_) / 32;
  uint64_t freed = 0;
  for (const CachedFile& file : files) {
    if (freed >= wanted) break;
    if (!CacheUsers::has(file.object) && remove(file)) freed += file.bytes;
  }
  evicted_.fetch_add(freed);
  return freed >= bytes;
}

}  // namespace headrace
