// SPDX-License-Identifier: Apache-2.0
//
// Views: a data set seen through a list of its sample numbers: ds[[3, 1, 4]], ds[2:8], a filter.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "index/source.h"

namespace headrace {

// Numbers may repeat; each must be below base->size().  A view of a view is a view of the
// base.  8 bytes a sample.
//
// Blocks end where blocks of the base do, as long as the numbers ascend (a filter, or several
// one after the other): then a block of the base is fetched by one rank, once.  Blocks of which
// little is left are joined with their neighbours.  Numbers in no order at all are cut into
// stretches of the base's mean.
Result<std::shared_ptr<const Source>> make_view(std::shared_ptr<const Source> base,
                                                std::vector<uint64_t> samples);

// begin, begin + step, … below end (above it when step is negative), clamped as Python
// clamps slices that were normalised: 0 <= begin, end <= size.  step is not 0.
Result<std::shared_ptr<const Source>> make_slice(std::shared_ptr<const Source> base, int64_t begin,
                                                 int64_t end, int64_t step);

}  // namespace headrace
