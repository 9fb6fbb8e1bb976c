// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "format/format.h"

namespace headrace {

// An Arrow IPC file: the column `__key__`, then one for each field, described by metadata
// (arrow_columns.h) so that all of it is read back as it was.
Result<std::unique_ptr<Writer>> make_arrow_writer(ShardOutput out);
// Names must be different, UTF-8, and not the key's.
Status arrow_can_hold(const Schema& schema);

}  // namespace headrace
