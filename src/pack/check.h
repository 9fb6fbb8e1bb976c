// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

struct PackCheck {
  uint64_t shards = 0;
  uint64_t samples = 0;  // as the manifest says
  uint64_t files = 0;    // shards and their companions
  uint64_t bytes = 0;
  std::vector<std::string> problems =
      {};  // a line each: a file that is gone, or other than written
};

struct PackCheckOptions {
  unsigned threads = 0;                                   // 0: as many as cores
  std::function<void(uint64_t, uint64_t)> progress = {};  // bytes read, of how many
  const std::atomic<bool>* cancel = nullptr;
};

// Compares the files of a pack with sizes and checksums in its manifest: headrace.json in the
// folder, or beside a single file, cube.h5.headrace.json.  Nothing where there is no manifest; a
// manifest that cannot be read is kCorrupt.
Result<std::optional<PackCheck>> check_pack(const std::string& folder,
                                            const PackCheckOptions& options = {});

}  // namespace headrace
