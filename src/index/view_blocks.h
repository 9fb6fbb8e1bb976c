// SPDX-License-Identifier: Apache-2.0
//
// How the samples of a view are cut into blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/source.h"

namespace headrace {

struct ViewBlocks {
  Blocks blocks;
  // Where blocks follow the base's: the first sample of each block of the base, and whether the
  // view has at least a quarter of that block's samples.  Else both are empty.
  std::vector<uint64_t> base_begin;
  std::vector<bool> is_dense;
};

// Each of `samples` is below `base_size`.
ViewBlocks cut_view(const Blocks& base, uint64_t base_size, std::span<const uint64_t> samples);

}  // namespace headrace
