// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "format/format.h"

namespace headrace {

// The entry of the dict that holds the samples' keys.
inline constexpr std::string_view kPickleKeys = "__key__";

Result<std::unique_ptr<Writer>> make_pickle_writer(ShardOutput out);
Status pickle_can_hold(const Schema& schema);

}  // namespace headrace
