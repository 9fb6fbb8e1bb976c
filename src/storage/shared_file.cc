// SPDX-License-Identifier: Apache-2.0
#include "storage/shared_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/arena.h"
#include "storage/descriptors.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; glibc names it later
#endif

namespace headrace {
namespace {

constexpr std::string_view kMagic("HRHELD1\0", 8);
constexpr uint64_t kHead = 64;

std::string prefix() {
  return fmt::format("headrace-{}-", ::geteuid());
}

std::string part_path(const std::string& place) {
  return place + ".part";
}

void remove_file(const std::string& place) {
  ::unlink(place.c_str());
  ::unlink(part_path(place).c_str());
}

Status check_room(const std::string& folder, uint64_t bytes) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) return {};
  const uint64_t room = uint64_t{info.f_bavail} * info.f_frsize;
  if (room >= bytes) return {};
  return exhausted(fmt::format("{} has room for {} MiB, {} MiB are needed", folder, room >> 20,
                               (bytes >> 20) + 1));
}

// Huge pages for what is mapped, where the system gives them: rows that lie anywhere are gathered
// 1.2 times as fast from them (./dev bench --tokens), and 512 small pages need not be made one by
// one.  Shared memory has none unless they are asked for like this: of each one a page is written,
// and the system makes it whole.  Where it does not, the others stay as small as they are.
void ask_for_huge_pages(int fd, MutableBytes all) {
  const size_t whole = all.size() / kHugePageBytes * kHugePageBytes;
  const char zero = 0;
  for (size_t at = 0; at < whole; at += kHugePageBytes)
    if (::pwrite(fd, &zero, 1, static_cast<off_t>(at)) != 1) return;
  if (whole > 0) static_cast<void>(::madvise(all.data(), whole, MADV_COLLAPSE));
}

// Room that is there now and cannot go away.
Status reserve(int fd, const std::string& folder, uint64_t bytes) {
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return error == 0 ? Status() : exhausted(fmt::format("{}: {}", folder, std::strerror(error)));
}

Status failed_map() {
  return exhausted("mmap: " + std::string(std::strerror(errno)));
}

// At a multiple of 2 MiB, where a huge page can begin.
Result<MutableBytes> map_file(int fd, size_t size, int access) {
  const size_t pages = (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  const size_t spare = size < kHugePageBytes ? 0 : kHugePageBytes;
  void* const around =
      ::mmap(nullptr, pages + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (around == MAP_FAILED) return failed_map();
  auto* const begin = static_cast<std::byte*>(around);
  const size_t shift =
      spare == 0 ? 0 : (spare - reinterpret_cast<uintptr_t>(begin) % spare) % spare;
  if (::mmap(begin + shift, size, access, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    const Status failed = failed_map();
    ::munmap(around, pages + spare);
    return failed;
  }
  if (shift > 0) ::munmap(around, shift);
  if (spare > shift) ::munmap(begin + shift + pages, spare - shift);
  return MutableBytes(begin + shift, size);
}

Status fill_file(const std::string& place, const SharedFile::Wish& wish) {
  const std::string part = part_path(place);
  const int fd = ::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return exhausted(fmt::format("{}: {}", part, std::strerror(errno)));
  const Descriptor file(fd);
  const uint64_t size = kHead + wish.bytes;
  HEADRACE_TRY(check_room(wish.folder, size));
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0)
    return exhausted(fmt::format("{}: {}", part, std::strerror(errno)));
  HEADRACE_ASSIGN(const MutableBytes all, map_file(fd, size, PROT_READ | PROT_WRITE));
  ask_for_huge_pages(fd, all);
  Status status = reserve(fd, wish.folder, size);
  if (status.ok()) status = wish.fill(all.subspan(kHead));
  if (status.ok()) {
    std::memcpy(all.data(), kMagic.data(), 8);
    store_le(all.subspan(8), wish.bytes);
    store_le(all.subspan(16), wish.name.high);
    store_le(all.subspan(24), wish.name.low);
  }
  ::munmap(all.data(), all.size());
  HEADRACE_TRY(status);
  if (::rename(part.c_str(), place.c_str()) != 0) return from_errno(errno, "rename");
  return {};
}

// The file mapped, where it is what is wished for; else nothing.
MutableBytes map_whole(const std::string& place, const SharedFile::Wish& wish) {
  const int fd = ::open(place.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return {};
  const Descriptor file(fd);
  const size_t size = kHead + wish.bytes;
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
      static_cast<uint64_t>(info.st_size) != size)
    return {};
  const Result<MutableBytes> mapped = map_file(fd, size, PROT_READ);
  if (!mapped.ok()) return {};
  const Bytes head = mapped.value().first(kHead);
  const Hash128 name{load_le<uint64_t>(head.subspan(16)), load_le<uint64_t>(head.subspan(24))};
  if (as_text(head.first(8)) == kMagic && load_le<uint64_t>(head.subspan(8)) == wish.bytes &&
      name == wish.name)
    return mapped.value();
  ::munmap(mapped.value().data(), size);
  return {};
}

}  // namespace

Result<std::unique_ptr<SharedFile>> SharedFile::open(const Wish& wish) {
  const std::string place = wish.folder + '/' + prefix() + wish.name.hex();
  SharedUse::sweep(wish.folder, prefix(), place, remove_file);
  std::unique_ptr<SharedFile> out(new SharedFile());
  const auto map = [&] {
    const MutableBytes mapped = map_whole(place, wish);
    out->memory_ = mapped.data();
    out->size_ = mapped.size();
    return !mapped.empty();
  };
  HEADRACE_ASSIGN(out->use_, SharedUse::take({.place = place,
                                              .is_whole = map,
                                              .make = [&] { return fill_file(place, wish); },
                                              .remove = remove_file,
                                              .cancel = wish.cancel}));
  return out;
}

SharedFile::~SharedFile() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

Bytes SharedFile::content() const {
  return Bytes(memory_, size_).subspan(kHead);
}

}  // namespace headrace
