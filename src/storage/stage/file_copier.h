// SPDX-License-Identifier: Apache-2.0
//
// FileCopier: the bytes of files from a store into files of this machine, with their checksums.
//
//   a store whose read() waits     threads read and write by turns, each at a file of its own
//   a store that completes later   ┌ pieces of several files are under way; neighbours become one
//                                  │ request (http/loop.h), so most files come as a whole
//                                  └ threads write what has arrived, one thread at a file
//
// A piece is 512 KiB: what was read is still in the processor's cache when it is summed up and
// written, and its memory goes round.  Two threads that write to one file wait for each other in
// the kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "storage/stage/stage.h"
#include "storage/store.h"

namespace headrace {

struct CopyOptions {
  unsigned streams = 0;  // files and parts of files at a time; 0: as many as the store finds useful
  const std::atomic<bool>* cancel = nullptr;
  // The name under which a file is written.
  std::function<std::string(const StageFile&)> path;
  // Called once a file, when all of it is written.  From any thread.
  std::function<Status(const StageFile&, int fd, uint32_t checksum)> finish;
  std::function<void(uint64_t)> tell;  // so many bytes more are written; from any thread
};

// All of them, or the first failure; what was begun stays under its name.
Status copy_files(const Store& from, std::span<const StageFile* const> files,
                  const CopyOptions& options);

// What finish() was told of a file of so many bytes that lies at `path`.
Result<uint32_t> checksum_of_copy(const std::string& path, uint64_t bytes);

}  // namespace headrace
