// SPDX-License-Identifier: Apache-2.0
//
// StagedStore: a store around a store that reads each file from where its bytes are: the copy in a
// stage folder (stage.h) once that is complete, the store until then.  So training begins while the
// copy is made.
//
//   HEADRACE_ASSIGN(auto staged, StagedStore::make(s3, files, {.folder = "/dev/shm/hr"}));
//
// One process of the machine copies, in a thread of its own; when it ends, another goes on.  The
// copy lies in FOLDER/stage-<hash of paths, sizes, versions>, so that files that changed are
// others.  The last process that uses it removes it; what killed ones left goes with the next that
// stages there.  A copy that stage_kept() made ahead of time stays until remove_kept().
//
//   FOLDER/stage-<hash>/          the copy
//   FOLDER/stage-<hash>.hrstage   its journal (stage.h)
//   FOLDER/stage-<hash>.lock      of all who use it (shared_use.h)
//   FOLDER/stage-<hash>.kept      there: nobody but remove_kept() removes the copy
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "storage/descriptors.h"
#include "storage/lru.h"
#include "storage/shared_use.h"
#include "storage/stage/stage.h"
#include "storage/store.h"

namespace headrace {

struct StagedOptions {
  std::string folder;
  unsigned streams = 0;
};

struct StagedCounts {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t bytes_there = 0;  // as far as this process copied or saw them
  uint64_t staged_reads = 0;
  uint64_t source_reads = 0;
};

// Thread-safe.
class StagedStore final : public StoreWrapper {
 public:
  static Result<std::shared_ptr<const StagedStore>> make(std::shared_ptr<const Store> inner,
                                                         std::vector<std::string> files,
                                                         const StagedOptions& options);
  ~StagedStore() override;

  void read(std::span<ReadRequest> requests) const override;
  bool read_if_resident(ReadRequest& request) const override;
  StoreCost cost(const std::string& path) const override;

  StagedCounts counts() const;
  std::vector<std::string> take_notices() const;
  // Until all is there, or copying failed; then the reason.
  Status wait_until_staged() const;
  const std::string& folder() const { return folder_; }

 private:
  struct Copy {
    std::string path;
    std::string version;  // of what it is a copy of
    uint64_t bytes = 0;
    mutable std::atomic<bool> is_there{false};
  };
  StagedStore(std::shared_ptr<const Store> inner, StagePlan plan, std::string folder,
              const StagedOptions& options);
  const Copy* copy_of(const ReadRequest& request) const;
  bool read_copy(ReadRequest& request, const Copy& copy, bool at_once) const;
  void copy_all();

  const StagePlan plan_;
  const std::string folder_;
  const StagedOptions options_;
  const std::shared_ptr<const Store> local_;
  std::unordered_map<std::string, Copy, TextHash, std::equal_to<>> copies_;
  std::unique_ptr<SharedUse> use_;  // while it lives the copy stays
  const int pid_;
  std::atomic<bool> cancel_{false};
  std::atomic<uint64_t> done_bytes_{0};
  mutable std::atomic<uint64_t> staged_reads_{0};
  mutable std::atomic<uint64_t> source_reads_{0};
  mutable Mutex mu_;
  mutable CondVar changed_;
  mutable std::vector<std::string> notices_ HEADRACE_GUARDED_BY(mu_);
  bool is_over_ HEADRACE_GUARDED_BY(mu_) = false;
  Status status_ HEADRACE_GUARDED_BY(mu_);
  std::thread thread_;
};

// Copies ahead of time what a StagedStore of the same files and folder then finds there, and keeps
// it.  Where another process copies the same, this one waits for it.
Result<StageReport> stage_kept(const Store& from, const StagePlan& plan, const std::string& folder,
                               const StageOptions& options);
// Removes all copies that stage_kept() made in the folder, and the folder where it is then empty;
// returns the bytes.  kNotFound where there is none, kUnavailable where one is in use.
Result<uint64_t> remove_kept(const std::string& folder);

}  // namespace headrace
