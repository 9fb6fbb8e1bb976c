// SPDX-License-Identifier: Apache-2.0
//
// Files held in memory: read once, as they lie, into memory that all processes of the user on
// this machine share.
//
//   /dev/shm/headrace-<user>-<hash of paths, sizes, times>
//
//   0         8          16       32          64
//   +---------+----------+--------+-----------+- - - - - - - - - - - - - - - -+
//   | magic   | bytes in | hash   | zeros     | files, each at a multiple of 64|
//   | HRHELD1 | all, u64 |        |           |                                |
//   +---------+----------+--------+-----------+- - - - - - - - - - - - - - - -+
//
// Shared as shared_use.h tells: the first process to come writes it, the last removes it, and what
// killed ones left is used again or swept away.  Only files of this name and user are ever removed.
// Nobody shortens a file of ours, and its pages are allocated before they are written: no SIGBUS.
//
// Where /dev/shm has no room the process keeps the bytes for itself.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "storage/store.h"

namespace headrace {

struct HoldOptions {
  std::string folder = "/dev/shm";
  uint64_t most_bytes = ~uint64_t{0};  // more are kExhausted
  const std::atomic<bool>* cancel = nullptr;
};

struct HeldFiles {
  std::shared_ptr<const Store> store;  // `files` from memory; all else from the inner store
  uint64_t bytes = 0;
  bool is_shared = false;
  bool was_there = false;  // another process had read them
  std::string notice;      // for the user, where something is not as hoped
};

// Blocks until they are read, here or by another process.
Result<HeldFiles> hold_files(std::shared_ptr<const Store> inner, std::vector<std::string> files,
                             const HoldOptions& options);

}  // namespace headrace
