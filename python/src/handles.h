// SPDX-License-Identifier: Apache-2.0
//
// A source as Python holds it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/source.h"

namespace headrace::py {

struct SourceHandle {
  std::shared_ptr<const Source> source;
  std::string format;
  std::vector<std::string> notices;  // what the user should hear once
  bool index_built = false;          // and not found ready
  uint64_t shards = 0;
};

}  // namespace headrace::py
