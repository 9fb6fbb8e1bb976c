// SPDX-License-Identifier: Apache-2.0
#include "storage/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace headrace {
namespace {

EntrySort sort_of(const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return EntrySort::kFile;
    case DT_DIR:
      return EntrySort::kFolder;
    case DT_LNK:
    case DT_UNKNOWN:
      return EntrySort::kMaybe;
    default:
      return EntrySort::kOther;
  }
}

}  // namespace

Result<Folder> Folder::open(const std::string& path) {
  int fd = -1;
  do fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd >= 0) return Folder(std::make_shared<const Descriptor>(fd));
  if (errno == ENOTDIR) return not_found("no folder").in_file(path);
  return from_errno(errno, "list").in_file(path);
}

Status Folder::visit(
    const std::function<void(std::string_view name, EntrySort sort)>& visit) const {
  // readdir() closes what it reads from, and the copy shares its place in the folder.
  const int copy = ::fcntl(file_->fd(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return from_errno(errno, "list");
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> folder(::fdopendir(copy), close);
  if (folder == nullptr) {
    const Status status = from_errno(errno, "list");
    ::close(copy);
    return status;
  }
  ::rewinddir(folder.get());
  for (errno = 0; const dirent* entry = ::readdir(folder.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(name, sort_of(*entry));
  }
  return errno == 0 ? Status() : from_errno(errno, "list");
}

Result<std::optional<uint64_t>> Folder::file_bytes(const std::string& name) const {
  struct statx info{};
  const unsigned wanted = STATX_TYPE | STATX_SIZE;
  if (::statx(file_->fd(), name.c_str(), 0, wanted, &info) == 0)
    return S_ISREG(info.stx_mode) ? std::optional<uint64_t>(info.stx_size) : std::nullopt;
  if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR) return from_errno(errno, "stat");
  const bool is_link = ::statx(file_->fd(), name.c_str(), AT_SYMLINK_NOFOLLOW, wanted, &info) == 0;
  return is_link ? std::optional<uint64_t>(0) : std::nullopt;
}

Result<Folder::Identity> Folder::identity() const {
  struct stat info{};
  if (::fstat(file_->fd(), &info) != 0) return from_errno(errno, "stat");
  return Identity{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
}

}  // namespace headrace
