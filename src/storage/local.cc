// SPDX-License-Identifier: Apache-2.0
//
// The local file system, and everything mounted into it.  read() runs in the
// calling thread.  Ranges are read from descriptors that stay open; whole files
// are opened, measured, read and closed: open+read+close of 110 KB costs 21 µs
// warm, of which the copy is 11.

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>

#include "base/guard.h"
#include "storage/descriptors.h"
#include "storage/file_system.h"
#include "storage/local.h"
#include "storage/open_store.h"

namespace headrace {
namespace {

int64_t nanoseconds(const timespec& t) {
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// EISDIR is the caller's mistake; from_errno would call it worth trying again.
Status failed(int error, std::string_view doing) {
  if (error == EISDIR) return invalid("is a folder, a file is wanted");
  if (error == EIO)
    return unavailable(fmt::format(
        "{}: the disk or its server failed here (EIO); dmesg may say more, a copy of the file may "
        "help",
        doing));
  if (error == ESTALE)
    return unavailable(fmt::format(
        "{}: the file was replaced on its server (ESTALE), twice; open the data set again", doing));
  return from_errno(error, doing);
}

// Exact: all of `out`, or an error with the offset at which the file ended.
Status read_exactly(int fd, uint64_t offset, MutableBytes out, int& error) {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      error = errno;
      return failed(error, "read").at(offset);
    }
    if (n == 0)
      return corrupt(fmt::format("the file ends here, {} bytes too early", out.size())).at(offset);
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

// The pieces of a request, and what lies between them, by as few calls as may be.  Gaps from kGap
// on are not read.
Status read_pieces(int fd, ReadRequest& request, int& error) {
  constexpr size_t kGap = 64 << 10;
  constexpr size_t kMostParts = 512;  // of one call; the kernel takes 1,024
  Buffer unwanted;
  std::vector<iovec> parts;
  uint64_t begin = request.offset;  // of `parts`
  uint64_t end = begin;
  const auto read_parts = [&]() -> Status {
    const ssize_t n = parts.empty() ? 0
                                    : ::preadv(fd, parts.data(), static_cast<int>(parts.size()),
                                               static_cast<off_t>(begin));
    // What a call left, for whatever reason, is read or failed part by part.
    uint64_t got = n > 0 ? static_cast<uint64_t>(n) : 0;
    for (const iovec& part : parts) {
      const uint64_t had = std::min<uint64_t>(got, part.iov_len);
      got -= had;
      HEADRACE_TRY(read_exactly(
          fd, begin + had,
          MutableBytes(static_cast<std::byte*>(part.iov_base), part.iov_len).subspan(had), error));
      begin += part.iov_len;
    }
    parts.clear();
    return {};
  };
  for (ReadPiece& piece : request.pieces) {
    const uint64_t from = request.offset + piece.begin;
    const uint64_t gap = from - end;
    if (parts.empty() || gap >= kGap || parts.size() + 2 > kMostParts) {
      HEADRACE_TRY(read_parts());
      begin = from;
    } else if (gap > 0) {
      if (unwanted.size() == 0) unwanted.resize(kGap);
      parts.push_back({unwanted.data(), gap});
    }
    piece.into.resize(piece.length);
    if (piece.length > 0) parts.push_back({piece.into.data(), piece.length});
    end = from + piece.length;
  }
  HEADRACE_TRY(read_parts());
  request.in_pieces = true;
  return {};
}

// Lengths and offsets come from the file: for a long one it is asked first whether it is there, so
// that no memory is taken for what cannot be.
constexpr uint64_t kLong = uint64_t{64} << 20;

bool is_long(const ReadRequest& request) {
  return request.length >= kLong || request.offset > uint64_t{INT64_MAX};
}

Status check_end(int fd, const ReadRequest& request) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return from_errno(errno, "stat");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (request.offset <= size && request.length <= size - request.offset) return {};
  const uint64_t there = request.offset < size ? size - request.offset : 0;
  return corrupt(fmt::format("the file ends here, {} bytes too early", request.length - there))
      .at(std::max(size, request.offset));
}

// All of `out` from the page cache, or false.  Files that are memory need no such question, and do
// not understand it.
bool read_at_once(const Descriptor& file, uint64_t offset, MutableBytes out) {
  const int fd = file.fd();
  while (!out.empty()) {
    const iovec into{out.data(), out.size()};
    const int flags = file.is_memory() ? 0 : RWF_NOWAIT;
    const ssize_t n = ::preadv2(fd, &into, 1, static_cast<off_t>(offset), flags);
    if (n <= 0) return false;
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

// Opens a file whose name and node are in memory already; null where they are not, or the kernel
// (before 5.12) cannot tell.
OpenFile open_at_once(const std::string& path) {
#if defined(SYS_openat2) && defined(RESOLVE_CACHED)
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;
  const int64_t fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  if (fd >= 0) return std::make_shared<const Descriptor>(static_cast<int>(fd));
#else
  (void)path;
#endif
  return nullptr;
}

std::string file_version(const struct stat& info) {
  return version_of(static_cast<uint64_t>(info.st_size), nanoseconds(info.st_mtim));
}

bool read_whole_at_once(ReadRequest& request) {
  const OpenFile file = open_at_once(request.path);
  struct stat info{};
  if (file == nullptr || ::fstat(file->fd(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  std::string version = file_version(info);
  if (!request.version.empty() && request.version != version) return false;
  request.into.resize(static_cast<size_t>(info.st_size));
  if (!read_at_once(*file, 0, request.into.span())) return false;
  request.version = std::move(version);
  return true;
}

// The size is asked for in any case, so the version comes for nothing.
Status read_whole(ReadRequest& request, int& error) {
  HEADRACE_ASSIGN(const OpenFile file, open_descriptor(request.path));
  struct stat info{};
  if (::fstat(file->fd(), &info) != 0) return from_errno(errno, "stat");
  std::string version = file_version(info);
  if (!request.version.empty() && request.version != version)
    return changed_file(request.version, version);
  request.into.resize(static_cast<size_t>(info.st_size));
  HEADRACE_TRY(read_exactly(file->fd(), 0, request.into.span(), error));
  request.version = std::move(version);
  return {};
}

// Whether the open file is of the version, as far as one is asked for.
Status check_version(int fd, const std::string& version) {
  if (version.empty()) return {};
  struct stat info{};
  if (::fstat(fd, &info) != 0) return from_errno(errno, "stat");
  const std::string found = file_version(info);
  return found == version ? Status() : changed_file(version, found);
}

constexpr StoreCost kDisk{.latency_ns = 100'000, .parallel_reads = 32};
// A file system with a network between, whatever the kernel caches of it.
constexpr StoreCost kMounted{.latency_ns = 2'000'000, .parallel_reads = 64};

// Whether a directory entry is a folder; a stat only where readdir does not say.
bool is_folder(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type == DT_DIR;
  struct stat info{};
  return ::fstatat(folder, entry.d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

class LocalStore final : public Store {
 public:
  explicit LocalStore(size_t open_files) : descriptors_(open_files) {}

  void read(std::span<ReadRequest> requests) const override {
    // To announce what lies in the page cache costs a tenth of reading it: so only from the first
    // request on that does not.
    bool all_resident = requests.size() > 1;
    for (size_t i = 0; i < requests.size(); ++i) {
      ReadRequest& request = requests[i];
      if (request.is_cancelled()) {
        complete_cancelled(std::move(request));
        continue;
      }
      mark_sent(request);
      if (all_resident && read_from_cache(request)) {
        complete(std::move(request), {});
        continue;
      }
      if (all_resident) announce(requests.subspan(i));
      all_resident = false;
      // Memory may run out, and whoever asked must hear of it.
      Status status = guard([&] { return read_one(request); });
      complete(std::move(request), std::move(status));
    }
  }

  bool read_if_resident(ReadRequest& request) const override {
    if (request.length == kWholeFile) return read_whole_at_once(request);
    const auto file = descriptors_.open(request.path);
    if (!file.ok() || is_long(request)) return false;  // read() says why, or looks first
    if (!check_version(file.value()->fd(), request.version).ok()) return false;
    request.into.resize(request.length);
    return read_at_once(*file.value(), request.offset, request.into.span());
  }

  // What is known to be a disk or memory of this machine is near; all else may be far.
  StoreCost cost(const std::string& path) const override {
    return file_system_of(path).is_near ? kDisk : kMounted;
  }

  std::vector<Result<FileInfo>> stat_all(std::span<const std::string> paths) const override {
    std::vector<Result<FileInfo>> out;
    out.reserve(paths.size());
    for (const std::string& path : paths) out.push_back(stat_one(path));
    return out;
  }

  // All in one page: a folder cannot be read from the middle in the order of its names.
  Result<ListPage> list_page(const std::string& folder, const std::string& after) const override {
    const auto close = [](DIR* d) { ::closedir(d); };
    const std::unique_ptr<DIR, decltype(close)> dir(::opendir(folder.c_str()), close);
    if (dir == nullptr) return from_errno(errno, "list").in_file(folder);
    const std::string prefix = folder.ends_with('/') ? folder : folder + '/';
    std::vector<FileInfo> entries;
    for (errno = 0; const dirent* entry = ::readdir(dir.get()); errno = 0) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      FileInfo info{.path = prefix + entry->d_name};
      if (!after.empty() && info.path <= after) continue;
      info.is_folder = is_folder(::dirfd(dir.get()), *entry);
      entries.push_back(std::move(info));
    }
    if (errno != 0) return from_errno(errno, "list").in_file(folder);
    std::sort(entries.begin(), entries.end(),
              [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
    return ListPage{std::move(entries)};
  }

 private:
  Result<FileInfo> stat_one(const std::string& path) const {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) {
      Status status = from_errno(errno, "stat").in_file(path);
      descriptors_.forget(path);
      return status;
    }
    // What is read next is what was just looked at, not a file that it replaced.
    descriptors_.forget_unless(path, info.st_dev, info.st_ino);
    return FileInfo{.path = path,
                    .bytes = static_cast<uint64_t>(info.st_size),
                    .modified_ns = nanoseconds(info.st_mtim),
                    .is_folder = S_ISDIR(info.st_mode),
                    .version = file_version(info)};
  }

  // Of the version that is asked for: a descriptor may be of a file that was replaced since.
  Result<OpenFile> open_version(const ReadRequest& request) const {
    HEADRACE_ASSIGN(OpenFile file, descriptors_.open(request.path));
    if (check_version(file->fd(), request.version).ok()) return file;
    descriptors_.forget(request.path);
    HEADRACE_ASSIGN(file, descriptors_.open(request.path));
    HEADRACE_TRY(check_version(file->fd(), request.version));
    return file;
  }

  // From the page cache; false where it is not there, or anything else is wrong: read_one() says.
  bool read_from_cache(ReadRequest& request) const {
    bool is_read = false;
    const Status tried = guard([&]() -> Status {
      is_read = request.pieces.empty() && read_if_resident(request);
      return {};
    });
    return tried.ok() && is_read;
  }

  // Tells the kernel which ranges come next, where that has several of them under way.
  void announce(std::span<const ReadRequest> requests) const {
    for (const ReadRequest& request : requests) {
      if (request.length == kWholeFile || is_long(request) || request.is_cancelled()) continue;
      const Result<OpenFile> file = descriptors_.open(request.path);
      if (!file.ok() || !announces(file.value()->fd())) return;
      (void)::posix_fadvise(file.value()->fd(), static_cast<off_t>(request.offset),
                            static_cast<off_t>(request.length), POSIX_FADV_WILLNEED);
    }
  }

  // Asked of each device once.
  bool announces(int fd) const {
    struct stat info{};
    if (::fstat(fd, &info) != 0) return false;
    {
      MutexLock lock(mu_);
      const auto known = announces_.find(info.st_dev);
      if (known != announces_.end()) return known->second;
    }
    struct statfs system{};
    const bool is_known = ::fstatfs(fd, &system) == 0;
    const bool answer =
        is_known && (file_system(int64_t{system.f_type}).announces || is_rotating(info.st_dev));
    MutexLock lock(mu_);
    return announces_.emplace(info.st_dev, answer).first->second;
  }

  Status read_one(ReadRequest& request) const {
    return read_again_if_stale([&](int& error) { return read_once(request, error); },
                               [&] { descriptors_.forget(request.path); });
  }

  Status read_once(ReadRequest& request, int& error) const {
    if (request.length == kWholeFile) return read_whole(request, error);
    HEADRACE_ASSIGN(const OpenFile file, open_version(request));
    // Of pieces the last need not be where the range ends.
    if (is_long(request) || !request.pieces.empty()) HEADRACE_TRY(check_end(file->fd(), request));
    if (!request.pieces.empty()) {
      HEADRACE_TRY(check_pieces(request));
      return read_pieces(file->fd(), request, error);
    }
    request.into.resize(request.length);
    return read_exactly(file->fd(), request.offset, request.into.span(), error);
  }

  Descriptors descriptors_;
  mutable Mutex mu_;
  mutable std::map<uint64_t, bool> announces_ HEADRACE_GUARDED_BY(mu_);  // by device
};

}  // namespace

std::shared_ptr<const Store> local_store(size_t open_files) {
  return std::make_shared<const LocalStore>(open_files);
}

namespace {
constexpr std::string_view kSchemes[] = {"file"};
}  // namespace

extern const StoreKind local_stores = {
    .name = "local",
    .schemes = kSchemes,
    .purpose = "files of this machine, and of what is mounted into it",
    .make = [](const StoreOptions&, std::string_view) -> Result<std::shared_ptr<const Store>> {
      return local_store();
    },
};

}  // namespace headrace
