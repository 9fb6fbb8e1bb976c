// SPDX-License-Identifier: Apache-2.0
//
// Reading in the calling thread, without an engine: samples by number, and packing.
#pragma once

#include "engine/gather.h"
#include "engine/unit_cache.h"

namespace headrace {

// Reads, and decodes, all that resolve() and merge() found.  Failures stand in the ranges and
// units.
void read_now(Gather& gather, UnitCache& units);

// Hands each request over to its store, neighbours of one store at once.
void read_by_store(std::span<ReadRequest> reads, std::span<const Store* const> stores);

// Decodes a unit that was read, if it needs that; a failure stands in it, with its place.
void decode_unit(SharedUnit& unit, UnitCache& units);

}  // namespace headrace
