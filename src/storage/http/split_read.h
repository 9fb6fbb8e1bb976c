// SPDX-License-Identifier: Apache-2.0
//
// SplitRead: a large read that the first batch of an epoch waits for, as several requests.  On a
// wire that all connections share each gets as much as the others: as one request it would be
// complete when all large reads are that were sent with it.
#pragma once

#include <vector>

#include "storage/store.h"

namespace headrace {

// A part of a read.  `room`: memory of the whole read, unless the part has pieces of its own.
struct ReadPart {
  ReadRequest request;
  MutableBytes room;
};

// In parts of about so many bytes; cut between pieces, where it has some.  The whole completes with
// the last of them, and fails with the first that fails.  Memory for it that cannot be had is a
// failure, and the request stays as it was.
Result<std::vector<ReadPart>> split_read(ReadRequest& request, uint64_t part_bytes);

}  // namespace headrace
