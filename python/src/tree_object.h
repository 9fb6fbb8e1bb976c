// SPDX-License-Identifier: Apache-2.0
//
// Trees (array/tree.h) as Python has them: None, bool, int, float, str, bytes, list, dict, NumPy.
#pragma once

#include <nanobind/nanobind.h>

#include "array/tree.h"

namespace headrace::py {

// Tuples are lists.  Texts may hold what os.fsdecode() makes of bytes that are no UTF-8.  Objects
// of other types are a TypeError.
Tree to_tree(nanobind::handle object);
nanobind::object to_object(const Tree& tree);

}  // namespace headrace::py
