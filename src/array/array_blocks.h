// SPDX-License-Identifier: Apache-2.0
//
// What a source of arrays tells the plan: its blocks, and the sizes that its fingerprint knows.
#pragma once

#include <vector>

#include "array/array_source.h"

namespace headrace {

// The size of each file: those that are known, and those of files that hold more than a chunk;
// small files that are one are too many to ask for, and have 0.
std::vector<uint64_t> sizes_of_files(const ArrayDescription& d, const Store& store);

// Blocks end where chunks end along the axis, so that a pool opens each chunk once.  `samples`: all
// of them, `tiles` at each position.
Blocks cut_blocks(const ArrayDescription& d, uint64_t samples, uint64_t tiles,
                  const std::vector<bool>& is_unshared);

}  // namespace headrace
