// SPDX-License-Identifier: Apache-2.0
//
// In which parts a run is read, so that each value that is handed over has memory of its own, and
// by how many requests.
#pragma once

#include <span>
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

// The parts that one request reads.
struct PartsOfRead {
  size_t first = 0, count = 0;
};

// Neighbours, of about as many bytes in each request, at most `most_bytes` where a part is not
// larger by itself.  Without parts one request for all, of no parts.
//
// What is under way is limited in bytes, so several short requests bring as much in less time
// than a long one does, as long as the store answers so many at once: most_bytes says so.
std::vector<PartsOfRead> reads_of_parts(std::span<const RunPart> parts, uint64_t most_bytes);

}  // namespace headrace
