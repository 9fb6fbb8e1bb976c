// SPDX-License-Identifier: Apache-2.0
//
// Samples of an object in Python that other processes make, many in one call:
//
//   numbers ──► a process: the object's __getitem__, each sample encoded into shared memory
//           ◄── where each ends, and which failed
//   numbers and slots ──► likewise, each value right in its slot of the batch
//                     ◄── which failed
//
// Nothing of it runs Python here, and nothing takes the GIL but the traceback of a failure.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "handles.h"
#include "item_encoder.h"
#include "item_fetch.h"
#include "item_thread.h"

namespace headrace::py {

// The samples of one call, in the process.
struct EncodedRows {
  std::vector<uint64_t> ends;  // of each row, counted from the first; an empty row failed
  uint32_t in_place = 0;       // so many rows are in the place; the others in `more`
  std::vector<std::byte> more;
  std::vector<std::pair<size_t, nanobind::object>> failed;  // which, and what was raised
};

// With the GIL.
EncodedRows encode_rows(const ItemEncoder& encoder, const ItemFetch& fetch,
                        std::span<const uint64_t> numbers, MutableBytes place);

// Rows as the header of a call says them, with the memory of their columns.  Nothing where it is of
// another form.
std::vector<RowsToMake> rows_of_call(std::string_view header, std::span<const MutableBytes> places);

// In this process: calls target 0 of the processes (headrace/processes/pool.py), which it keeps.
// `row_bytes`: what a row takes, about.
std::shared_ptr<const ItemServer> item_processes(nanobind::handle processes, uint64_t row_bytes,
                                                 std::shared_ptr<ItemCost> cost);

}  // namespace headrace::py
