// SPDX-License-Identifier: Apache-2.0
//
// What somebody waits for as soon as it is asked for: the first batch of an epoch.  The engine says
// which reads are for it; a store may let them go before all else.  Thread-safe.
//
//   set_first_batch(group, step);   // before its reads
//   is_for_first_batch(request)
#pragma once

#include <memory>

#include "storage/store.h"

namespace headrace {

// Of this group, for as long as it lives: those of this priority.
void set_first_batch(const std::shared_ptr<const ReadGroup>& group, uint64_t priority);

bool is_for_first_batch(const ReadRequest& request);

}  // namespace headrace
