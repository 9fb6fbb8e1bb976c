// SPDX-License-Identifier: Apache-2.0
//
// Boxes of chunks read at once: for whoever wants all of an array and not samples of it.
#pragma once

#include <string>
#include <vector>

#include "array/array_boxes.h"
#include "storage/store.h"

namespace headrace {

// Reads what the box needs, opens it, and copies it into the region that begins at `region`.
// Thread-safe; scratch memory is the thread's own.
Status read_box(const ArrayBox& box, const std::vector<std::string>& files, const Store& store,
                const Strided& region);

}  // namespace headrace
