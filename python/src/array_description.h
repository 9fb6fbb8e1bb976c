// SPDX-License-Identifier: Apache-2.0
//
// What headrace/arrays say of files of arrays, as the core takes it.
#pragma once

#include <nanobind/nanobind.h>

#include "array/array_source.h"

namespace headrace::py {

// Chunks lie in `store`, or what it stands for.
ArrayDescription description_of(nanobind::handle dict, const Store& store);
// The local files, and those that a Python function gives the bytes of.
std::shared_ptr<const Store> store_of(nanobind::handle dict);

}  // namespace headrace::py
