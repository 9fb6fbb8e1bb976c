// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format.h"

namespace headrace {

// Samples must come in the order of their keys (Format::sorts_keys).
Result<std::unique_ptr<Writer>> make_lmdb_writer(ShardOutput out);

}  // namespace headrace
