// SPDX-License-Identifier: Apache-2.0
#include "storage/shared_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffix = ".lock";

// Closes what it holds.
class LockHandle {
 public:
  explicit LockHandle(const std::string& path, bool make)
      : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600)) {}
  ~LockHandle() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockHandle(const LockHandle&) = delete;
  LockHandle& operator=(const LockHandle&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Status wait_for_lock(int fd, int how, const std::atomic<bool>* cancel) {
  while (::flock(fd, how | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return from_errno(errno, "lock");
    if (cancel != nullptr && cancel->load()) return cancelled("waiting for data was cancelled");
    // flock() has no wait that Ctrl-C could end from another thread.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

// Still the file of that name, a plain one, and this user's.
bool is_current(int fd, const std::string& path) {
  struct stat mine{};
  struct stat named{};
  return ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &named) == 0 && S_ISREG(mine.st_mode) &&
         mine.st_uid == ::geteuid() && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

void remove_place(const std::string& place, const std::function<void(const std::string&)>& remove) {
  if (remove)
    remove(place);
  else
    ::unlink(place.c_str());
}

// Under the lock, which is held alone.
void remove_locked(const std::string& place,
                   const std::function<void(const std::string&)>& remove) {
  remove_place(place, remove);
  ::unlink(SharedUse::lock_path(place).c_str());
}

}  // namespace

// Those that are in use when the process ends in good order are let go then.
struct SharedUsesAtExit {
  Mutex mu;
  std::set<SharedUse*> open HEADRACE_GUARDED_BY(mu);

  static SharedUsesAtExit& all() {
    static auto* registry = [] {
      auto* made = new SharedUsesAtExit;  // never freed: they may be let go after it would be
      std::atexit([] {
        MutexLock lock(all().mu);
        for (SharedUse* use : all().open) use->let_go();
        all().open.clear();
      });
      return made;
    }();
    return *registry;
  }
};

SharedUse::SharedUse(Wish wish, int fd) : wish_(std::move(wish)), fd_(fd), pid_(::getpid()) {
  MutexLock guard(SharedUsesAtExit::all().mu);
  SharedUsesAtExit::all().open.insert(this);
}

Result<std::unique_ptr<SharedUse>> SharedUse::take(Wish wish) {
  const std::string path = lock_path(wish.place);
  bool made = false;
  while (true) {
    LockHandle lock(path, true);
    if (lock.get() < 0) return exhausted(fmt::format("{}: {}", path, std::strerror(errno)));
    HEADRACE_TRY(wait_for_lock(lock.get(), LOCK_SH, wish.cancel));  // for who makes it
    if (!is_current(lock.get(), path)) {
      struct stat info{};
      if (::fstat(lock.get(), &info) == 0 && info.st_uid != ::geteuid())
        return exhausted(path + " is another user's");
      continue;  // its last user removed it meanwhile
    }
    if (wish.is_whole()) {
      std::unique_ptr<SharedUse> out(new SharedUse(std::move(wish), lock.release()));
      out->was_there_ = !made;
      return out;
    }
    // Alone: others who found nothing wait here, and find it made.
    HEADRACE_TRY(wait_for_lock(lock.get(), LOCK_EX, wish.cancel));
    if (!is_current(lock.get(), path) || wish.is_whole()) continue;
    remove_place(wish.place, wish.remove);  // what a killed one left
    if (Status status = wish.make(); !status.ok()) {
      remove_locked(wish.place, wish.remove);
      return status;
    }
    made = true;  // between this lock and the next another may have come and gone
  }
}

std::unique_ptr<SharedUse> SharedUse::join(Wish wish) {
  const std::string path = lock_path(wish.place);
  LockHandle lock(path, true);
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0) return nullptr;
  if (!is_current(lock.get(), path)) return nullptr;
  return std::unique_ptr<SharedUse>(new SharedUse(std::move(wish), lock.release()));
}

bool SharedUse::remove_unused(const std::string& place,
                              const std::function<void(const std::string&)>& remove) {
  const std::string path = lock_path(place);
  const LockHandle lock(path, false);
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (!is_current(lock.get(), path)) return false;
  remove_locked(place, remove);
  return true;
}

void SharedUse::sweep(const std::string& folder, std::string_view prefix, const std::string& keep,
                      const std::function<void(const std::string&)>& remove) {
  std::vector<std::string> places;
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(folder.c_str()), close);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name(entry->d_name);
    if (name.starts_with(prefix) && name.ends_with(kSuffix))
      places.push_back(folder + '/' + std::string(name.substr(0, name.size() - kSuffix.size())));
  }
  for (const std::string& place : places)
    if (place != keep) (void)remove_unused(place, remove);
}

SharedUse::~SharedUse() {
  {
    MutexLock guard(SharedUsesAtExit::all().mu);
    SharedUsesAtExit::all().open.erase(this);
  }
  let_go();
}

void SharedUse::let_go() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return;
  if (pid_ == ::getpid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
      is_current(fd, lock_path(wish_.place)))
    remove_locked(wish_.place, wish_.remove);
  ::close(fd);
}

}  // namespace headrace
