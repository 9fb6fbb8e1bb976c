// SPDX-License-Identifier: Apache-2.0
//
// What of an axis is taken: values of its coordinate, as `sel` of Python's hr.array has them.
#pragma once

#include <string>
#include <vector>

#include "array/file_array.h"
#include "base/status.h"
#include "storage/store.h"

namespace headrace {

// All values of a coordinate, unpacked.
Result<std::vector<double>> coordinate_values(const FileArray& coordinate, const Store& store);

// The indexes of an axis of so many that `wanted` names: by the values of `coordinate` (within a
// millionth), or by number where that is null.  kInvalidArgument names the value that is not there.
Result<std::vector<int64_t>> find_indexes(const std::string& axis, int64_t extent,
                                          const FileArray* coordinate,
                                          const std::vector<double>& wanted, const Store& store);

}  // namespace headrace
