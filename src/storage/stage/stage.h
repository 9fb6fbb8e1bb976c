// SPDX-License-Identifier: Apache-2.0
//
// Staging: the files of a data set copied ahead of time to a near disk or into memory, with many
// streams, through any store.
//
//   HEADRACE_ASSIGN(StagePlan plan, plan_stage(*s3, files));
//   HEADRACE_ASSIGN(StageReport done, stage_files(*s3, plan, "/nvme/train", {}));
//
//   DST/…                      the files, under their names relative to the folder that they share,
//                              with their times: an index beside a shard stays current
//   DST/headrace.unfinished    while files are missing: the folder is no data set yet
//   DST.hrstage                what was planned and what is done, a line each; locked (flock) by
//                              the one process that copies
//
//   headrace stage 1
//   plan NAME                                     a file that is ours to write, and to remove
//   copied CHECKSUM BYTES VERSION NAME            it is there; the checksum is file_copier.h's
//   done CHECKSUM BYTES VERSION NAME              of an older version: with another checksum, so
//   the
//                                                 file is copied again
//
// A file is written under a temporary name beside its own and renamed when all of it is there; its
// line follows.  After a kill the same call goes on with what has no line.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "storage/store.h"

namespace headrace {

struct StageFile {
  std::string path;  // in the store
  std::string name;  // in the folder
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  std::string version;
};

struct StagePlan {
  std::vector<StageFile> files;
  uint64_t bytes = 0;
  Hash128 id;  // of paths, sizes and versions
};

// Sizes and versions of all files; those in folders have their names relative to what all share.
Result<StagePlan> plan_stage(const Store& from, std::vector<std::string> files);

struct StageOptions {
  unsigned streams = 0;  // files, and parts of 16 MiB, at a time; 0: as the store finds useful
  bool verify = false;   // reads the copies again, against their checksums
  std::function<void(uint64_t)> progress;  // bytes that are there; from any thread, one at a time
  const std::atomic<bool>* cancel = nullptr;
};

struct StageReport {
  uint64_t files = 0;
  uint64_t bytes = 0;         // of all files
  uint64_t copied_bytes = 0;  // the rest was there
  std::string notice;         // for the user, where there is something to say
};

// kExhausted where it does not fit: the text has both numbers.  kUnavailable where another process
// is copying to the folder.
Result<StageReport> stage_files(const Store& from, const StagePlan& plan, const std::string& folder,
                                const StageOptions& options);

// Removes what stage_files() wrote, and the folders that are empty then.  Returns the bytes.
Result<uint64_t> remove_stage(const std::string& folder);

}  // namespace headrace
