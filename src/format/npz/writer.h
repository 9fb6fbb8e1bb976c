// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "format/format.h"

namespace headrace {

Result<std::unique_ptr<Writer>> make_npz_writer(ShardOutput out);

}  // namespace headrace
