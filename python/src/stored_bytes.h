// SPDX-License-Identifier: Apache-2.0
//
// A buffer as Python's `bytes`, uncopied: the object's head is written into the buffer's margin.
#pragma once

#include <nanobind/nanobind.h>

#include "batch/buffer_pool.h"

namespace headrace::py {

// `bytes`, or headrace's subclass of it where the buffer is large and nobody else's.
nanobind::object stored_bytes(SharedBuffer buffer);

void bind_stored_bytes(nanobind::module_& m);

}  // namespace headrace::py
