// SPDX-License-Identifier: Apache-2.0
#include "storage/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "base/mutex.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic("HRHELD1\0", 8);
constexpr uint64_t kHead = 64;

// Closes what it holds.
class Handle {
 public:
  explicit Handle(int fd) : fd_(fd) {}
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string prefix() {
  return fmt::format("headrace-{}-", ::geteuid());
}

// The name is ours by its form; so must the owner be, and it must still have that name.
bool is_ours(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         info.st_nlink > 0;
}

Status lock(int fd, int how, const std::atomic<bool>* cancel) {
  while (::flock(fd, how | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return from_errno(errno, "lock");
    if (cancel != nullptr && cancel->load()) return cancelled("waiting for data was cancelled");
    // flock() has no wait that Ctrl-C could end from another thread.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

// Removes files of ours in `folder` that nobody uses: what killed processes left.
void sweep(const std::string& folder, const std::string& keep) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(folder.c_str()), close);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string path = folder + '/' + entry->d_name;
    if (!std::string_view(entry->d_name).starts_with(prefix()) || path == keep) continue;
    const Handle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() >= 0 && is_ours(file.get()) && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
        is_ours(file.get()))
      ::unlink(path.c_str());
  }
}

// Room that is there now and cannot go away.
Status reserve(int fd, const std::string& folder, uint64_t bytes) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) == 0) {
    const uint64_t room = uint64_t{info.f_bavail} * info.f_frsize;
    if (room < bytes)
      return exhausted(fmt::format("{} has room for {} MiB, {} MiB are needed", folder, room >> 20,
                                   (bytes >> 20) + 1));
  }
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return error == 0 ? Status() : exhausted(fmt::format("{}: {}", folder, std::strerror(error)));
}

}  // namespace

// Those that are open when the process ends in good order are let go then.
struct AtExit {
  Mutex mu;
  std::set<SharedFile*> open HEADRACE_GUARDED_BY(mu);

  static AtExit& all() {
    static auto* registry = [] {
      auto* made = new AtExit;  // never freed: files may be closed after it would be
      std::atexit([] {
        MutexLock lock(all().mu);
        for (SharedFile* file : all().open) file->let_go();
        all().open.clear();
      });
      return made;
    }();
    return *registry;
  }
};

Result<std::unique_ptr<SharedFile>> SharedFile::open(const Wish& wish) {
  const std::string path = wish.folder + '/' + prefix() + wish.name.hex();
  sweep(wish.folder, path);
  while (true) {
    auto found = open_complete(path, wish);
    if (!found.ok() || found.value() != nullptr) return found;
    // None there: one process makes it, under a lock of its own, and the others wait here.
    const std::string lock_path = path + ".lock";
    const Handle guard(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (guard.get() < 0) return exhausted(fmt::format("{}: {}", wish.folder, std::strerror(errno)));
    HEADRACE_TRY(lock(guard.get(), LOCK_EX, wish.cancel));
    if (!is_ours(guard.get())) continue;  // its maker is done and removed it
    found = open_complete(path, wish);
    if (found.ok() && found.value() == nullptr) found = make(path, wish);
    ::unlink(lock_path.c_str());
    return found;
  }
}

// The complete file of that name, or nothing.
Result<std::unique_ptr<SharedFile>> SharedFile::open_complete(const std::string& path,
                                                              const Wish& wish) {
  while (true) {
    Handle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() < 0) {
      if (errno == ENOENT) return std::unique_ptr<SharedFile>();
      return exhausted(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    HEADRACE_TRY(lock(file.get(), LOCK_SH, wish.cancel));
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return from_errno(errno, "stat");
    if (info.st_nlink == 0) continue;  // its last user removed it meanwhile
    if (!is_ours(file.get())) return exhausted(path + " is another user's");
    std::unique_ptr<SharedFile> out(new SharedFile(path, file.release()));
    if (out->map(wish).ok()) return out;
    ::unlink(path.c_str());  // ours by name and owner, and not what it should be
  }
}

Result<std::unique_ptr<SharedFile>> SharedFile::make(const std::string& path, const Wish& wish) {
  const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
  ::unlink(temporary.c_str());  // of a killed process that had our number
  Handle file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return exhausted(fmt::format("{}: {}", temporary, std::strerror(errno)));
  const auto fill = [&]() -> Status {
    HEADRACE_TRY(lock(file.get(), LOCK_EX, wish.cancel));
    HEADRACE_TRY(reserve(file.get(), wish.folder, kHead + wish.bytes));
    const size_t size = kHead + wish.bytes;
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return exhausted("mmap: " + std::string(std::strerror(errno)));
    const MutableBytes all(static_cast<std::byte*>(memory), size);
    Status status = wish.fill(all.subspan(kHead));
    std::memcpy(all.data(), kMagic.data(), 8);
    store_le(all.subspan(8), wish.bytes);
    store_le(all.subspan(16), wish.name.high);
    store_le(all.subspan(24), wish.name.low);
    ::munmap(memory, size);
    return status;
  };
  Status status = fill();
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = from_errno(errno, "rename");
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  std::unique_ptr<SharedFile> out(new SharedFile(path, file.release()));
  HEADRACE_TRY(lock(out->fd_, LOCK_SH, nullptr));
  HEADRACE_TRY(out->map(wish));
  out->was_there_ = false;
  return out;
}

Status SharedFile::map(const Wish& wish) {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return from_errno(errno, "stat");
  size_ = kHead + wish.bytes;
  if (static_cast<uint64_t>(info.st_size) != size_) return corrupt("another size");
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return exhausted("mmap: " + std::string(std::strerror(errno)));
  memory_ = static_cast<std::byte*>(memory);
  ::madvise(memory, size_, MADV_HUGEPAGE);  // where the system allows it for shared memory
  const Bytes head(memory_, kHead);
  const Hash128 name{load_le<uint64_t>(head.subspan(16)), load_le<uint64_t>(head.subspan(24))};
  if (as_text(head.first(8)) != kMagic || load_le<uint64_t>(head.subspan(8)) != wish.bytes ||
      name != wish.name)
    return corrupt("another content");
  pid_ = ::getpid();
  MutexLock guard(AtExit::all().mu);
  AtExit::all().open.insert(this);
  return {};
}

SharedFile::~SharedFile() {
  {
    MutexLock guard(AtExit::all().mu);
    AtExit::all().open.erase(this);
  }
  let_go();
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

void SharedFile::let_go() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return;
  if (pid_ == ::getpid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && is_ours(fd))
    ::unlink(path_.c_str());
  ::close(fd);
}

Bytes SharedFile::content() const {
  return Bytes(memory_, size_).subspan(kHead);
}

}  // namespace headrace
