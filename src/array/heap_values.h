// SPDX-License-Identifier: Apache-2.0
//
// From the stored elements of an HDF5 data set of variable length to the extents of its values.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "array/array_source.h"
#include "array/global_heap.h"
#include "array/value_table.h"
#include "storage/store.h"

namespace headrace {

// Calls the jobs 0, …, count - 1, each once, on as many threads as it likes.
using RunJobs = std::function<Status(size_t count, const std::function<Status(size_t)>& job)>;

struct HeapValues {
  Array references;         // u8, the last axis one reference long
  uint32_t item_bytes = 1;  // of an element of a value
  uint32_t file = 0;        // of `files`: where the heap lies
  HeapForm form;
};

// Reads all references and finds their values.  A value that cannot be found is noted in
// ValueTable::damaged; above a thousand of them the first is the error.  At most 36 bytes a value
// are held meanwhile, and no more values than the file has room for.
Result<std::shared_ptr<const ValueTable>> read_heap_values(const HeapValues& values,
                                                           const std::vector<std::string>& files,
                                                           const Store& store, const RunJobs& run);

}  // namespace headrace
