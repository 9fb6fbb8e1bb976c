// SPDX-License-Identifier: Apache-2.0
//
// Joined: samples of several data sets side by side, sample i of each.
//
//   images   jpg, cls        masks   png            joined   jpg, cls, png
//   images   png             masks   png            joined   images.png, masks.png
//
// The parts may lie in different stores.  Blocks, runs and keys are the first part's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/source.h"

namespace headrace {

struct JoinPart {
  std::string name;  // the prefix of stored names that other parts have too
  std::shared_ptr<const Source> source;
};

// At least two, equally long, each with a name of its own; else kInvalidArgument.
Result<std::shared_ptr<const Source>> join_sources(std::vector<JoinPart> parts);

}  // namespace headrace
