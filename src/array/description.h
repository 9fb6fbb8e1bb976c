// SPDX-License-Identifier: Apache-2.0
//
// What headrace/arrays/description.py say of files, variables, fields and samples, as the engine
// takes it.
#pragma once

#include "array/array_source.h"
#include "array/file_array.h"
#include "array/tree.h"

namespace headrace {

// Keys: files, arrays, variables, fields, starts, end, stride, tiled, names, labels, share.  Values
// of variable length are looked for in `store`, by jobs that `run` runs.
Result<ArrayDescription> description_of(const Tree& d, const Store& store, const RunJobs& run);

}  // namespace headrace
