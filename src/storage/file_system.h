// SPDX-License-Identifier: Apache-2.0
//
// What file system a path lies on, and how to read from it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace headrace {

struct FileSystem {
  std::string_view name;  // "ext4", "Lustre", …; "another" where it is not known
  bool is_near = false;   // a disk or memory of this machine
  // Reads pass a network, or a disk with a head: those that will come are announced to the kernel,
  // which then has several under way while the caller waits for the first.
  bool announces = true;
  bool is_memory = false;
};

// By the number that statfs() gives.
FileSystem file_system(int64_t type);
// Of a path that is there; "another" where it is not.
FileSystem file_system_of(const std::string& path);
// Whether the device is a disk that turns, as far as the kernel says.
bool is_rotating(uint64_t device);

// Reads; once more on a file that is opened anew where a server has replaced it (ESTALE).
// `read` sets its argument to the errno of a failure.
template <typename Read, typename Reopen>
Status read_again_if_stale(const Read& read, const Reopen& reopen) {
  int error = 0;
  Status status = read(error);
  if (status.ok() || error != ESTALE) return status;
  reopen();
  return read(error);
}

}  // namespace headrace
