// SPDX-License-Identifier: Apache-2.0
//
// Reading in the calling thread, without an engine: samples by number, and packing.
#pragma once

#include "engine/gather.h"
#include "engine/unit_cache.h"

namespace headrace {

// Reads, and opens, all that plan_reads() found.  Failures stand in the ranges and units.
void read_now(Gather& gather, UnitCache& units);

}  // namespace headrace
