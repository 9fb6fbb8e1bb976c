// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "storage/descriptors.h"
#include "storage/stage/stage.h"

namespace headrace {

// The file DST.hrstage (stage.h).  While it lives no other process copies to DST.  Thread-safe.
class StageJournal {
 public:
  struct Done {
    uint32_t checksum = 0;
    uint64_t bytes = 0;
    Hash128 version;
  };
  // kUnavailable where another process has it.
  static Result<std::unique_ptr<StageJournal>> open(const std::string& folder, bool make);
  static std::string path_of(const std::string& folder) { return folder + ".hrstage"; }
  static Hash128 version_of(const StageFile& file);

  bool was_there() const { return was_there_; }
  const std::set<std::string>& planned() const { return planned_; }
  // Null where the file is not done, or is another by now.
  const Done* done(const StageFile& file) const;
  Status plan(const StagePlan& plan);
  Status add(const StageFile& file, uint32_t checksum);
  void remove() const;

 private:
  StageJournal(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Status load();
  Status append(const std::string& lines) const;

  const std::string path_;
  const OpenFile file_;
  bool was_there_ = false;
  std::set<std::string> planned_;
  std::map<std::string, Done> done_;
  mutable Mutex mu_;
};

}  // namespace headrace
