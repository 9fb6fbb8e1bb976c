// SPDX-License-Identifier: Apache-2.0
//
// Values of variable length as Zarr holds them: all of them one after the other in one array,
// and an array of n + 1 numbers that say where each begins and the last one ends.
//
//   flat     | value 0 | value 1 |  value 2  |        in plain chunks, of one file or many
//   offsets  0         3         6           10
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "array/array_source.h"
#include "array/value_table.h"
#include "storage/store.h"

namespace headrace {

// Reads the offsets.  Those that do not rise, or go past the end of `flat`, are kCorrupt;
// chunks that are compressed are kUnsupported.
Result<std::shared_ptr<const ValueTable>> read_flat_values(const Array& flat, const Array& offsets,
                                                           const std::vector<std::string>& files,
                                                           const Store& store);

// Adds one value of such a table to the request: a piece for each file that it lies in.
void add_flat_value(const ValueTable& table, const ValueExtent& extent, Request& out);

}  // namespace headrace
