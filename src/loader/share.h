// SPDX-License-Identifier: Apache-2.0
//
// The files that some ranks read in the first epochs: what a node copies where it stages its share.
#pragma once

#include <cstdint>
#include <vector>

#include "loader/loader.h"

namespace headrace {

struct ShareOptions {
  PlanOptions plan;             // of any rank
  std::vector<uint32_t> ranks;  // of the node
  uint64_t epochs = 1;
};

// Of each source, the numbers of its files (Source::file_path), sorted.
Result<std::vector<std::vector<uint32_t>>> files_of_share(const std::vector<LoaderSource>& sources,
                                                          const ShareOptions& options);

}  // namespace headrace
