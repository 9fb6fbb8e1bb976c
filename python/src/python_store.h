// SPDX-License-Identifier: Apache-2.0
//
// Files whose bytes a Python function gives: what only another library can read.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "storage/store.h"

namespace headrace::py {

// `readers`: {path: function(offset, length) -> bytes}; one call at a time, under the GIL.  All
// other paths are `rest`'s.
std::shared_ptr<const Store> python_store(nanobind::handle readers,
                                          std::shared_ptr<const Store> rest);

}  // namespace headrace::py
