// SPDX-License-Identifier: Apache-2.0
//
// What headrace/arrays_*.py say of files of arrays, as the core takes it.
#pragma once

#include <nanobind/nanobind.h>

#include "array/array_source.h"

namespace headrace::py {

ArrayDescription description_of(nanobind::handle dict);

}  // namespace headrace::py
