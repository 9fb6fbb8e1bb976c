// SPDX-License-Identifier: Apache-2.0
//
// In which parts a run is read, so that each value that is handed over has memory of its own.
#pragma once

#include <vector>

#include "engine/read_policy.h"
#include "engine/unit_cache.h"
#include "index/source.h"

namespace headrace {

// What the samples of the block want of the run, if they are asked for as `ask` asks for one of
// them: large values each by themselves, small neighbours together.  None: the run is read as one,
// because its values are small, or nobody knows which samples it has.
std::vector<RunPart> parts_of_run(const Source& source, const SampleAsk& ask,
                                  const ReadPolicy& policy, const Unit& run);

}  // namespace headrace
