// SPDX-License-Identifier: Apache-2.0
#include "storage/file_system.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <fstream>

namespace headrace {
namespace {

struct Row {
  int64_t type;
  FileSystem system;
};

// Numbers of linux/magic.h, and of the file systems' own sources where the kernel has none.
constexpr Row kKnown[] = {
    {0xEF53, {"ext4", true, false}},        {0x58465342, {"xfs", true, false}},
    {0x9123683E, {"btrfs", true, false}},   {0x01021994, {"tmpfs", true, false, true}},
    {0x794C7630, {"overlay", true, false}}, {0xF2F52010, {"f2fs", true, false}},
    {0x2FC12FC1, {"zfs", true, false}},     {0x858458F6, {"ramfs", true, false, true}},
    {0x0BD00BD0, {"Lustre", false, true}},  {0x47504653, {"GPFS", false, true}},
    {0x6969, {"NFS", false, true}},         {0x19830326, {"BeeGFS", false, true}},
    {0x00C36400, {"Ceph", false, true}},    {0xFF534D42, {"CIFS", false, true}},
    {0xFE534D42, {"SMB", false, true}},     {0x65735546, {"FUSE", false, true}},
    {0x01021997, {"9p", false, true}},      {0x6A656A63, {"virtiofs", false, true}},
};

}  // namespace

FileSystem file_system(int64_t type) {
  for (const Row& row : kKnown)
    if (row.type == (type & 0xFFFFFFFF)) return row.system;
  return {"another"};
}

FileSystem file_system_of(const std::string& path) {
  struct statfs info{};
  if (::statfs(path.c_str(), &info) != 0) return {"another"};
  return file_system(int64_t{info.f_type});
}

bool is_rotating(uint64_t device) {
  // A partition has the queue of the disk that it is of.
  for (const char* where : {"queue/rotational", "../queue/rotational"}) {
    std::ifstream file(fmt::format("/sys/dev/block/{}:{}/{}", major(device), minor(device), where));
    char answer = 0;
    if (file >> answer) return answer == '1';
  }
  return false;
}

}  // namespace headrace
