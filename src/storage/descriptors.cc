// SPDX-License-Identifier: Apache-2.0
#include "storage/descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "storage/file_system.h"

namespace headrace {

bool Descriptor::is_memory() const {
  int known = is_memory_.load(std::memory_order_relaxed);
  if (known < 0) {
    struct statfs info{};
    known = ::fstatfs(fd_, &info) == 0 && file_system(info.f_type).is_memory ? 1 : 0;
    is_memory_.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

Descriptor::~Descriptor() {
  ::close(fd_);
}

Result<OpenFile> open_descriptor(const std::string& path) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return from_errno(errno, "open").in_file(path);
  return std::make_shared<const Descriptor>(fd);
}

Descriptors::Descriptors(size_t capacity)
    : table_([capacity] { return std::make_unique<Table>(capacity); }) {}

Result<OpenFile> Descriptors::open(std::string_view path) const {
  Table& table = *table_;
  {
    MutexLock lock(table.mu);
    if (const OpenFile* held = table.open.find(path)) return *held;
  }
  // Opened outside the lock: two threads may both open, and one of them is kept.
  HEADRACE_ASSIGN(OpenFile opened, open_descriptor(std::string(path)));
  OpenFile evicted;  // closed after the lock is gone: close() may take its time on NFS
  MutexLock lock(table.mu);
  evicted = table.open.insert(std::string(path), opened);
  return opened;
}

void Descriptors::forget(std::string_view path) const {
  Table& table = *table_;
  OpenFile removed;
  MutexLock lock(table.mu);
  removed = table.open.remove(path);
}

void Descriptors::forget_unless(std::string_view path, uint64_t device, uint64_t node) const {
  Table& table = *table_;
  OpenFile held;
  {
    MutexLock lock(table.mu);
    if (const OpenFile* found = table.open.find(path)) held = *found;
  }
  struct stat info{};
  if (held == nullptr || (::fstat(held->fd(), &info) == 0 && uint64_t{info.st_dev} == device &&
                          uint64_t{info.st_ino} == node))
    return;
  forget(path);
}

}  // namespace headrace
