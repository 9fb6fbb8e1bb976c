// SPDX-License-Identifier: Apache-2.0
//
// `.map(fn)`: a Python function as the last step of a field.  It runs on the compute
// threads, one at a time because of the GIL; what it costs is counted.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>

#include "loader/field.h"

namespace headrace::py {

// map: {fn, result: "array" | "text" | "bytes", dtype, shape (None: varies), cost: MapCost}
std::function<Result<DecoderPointer>(DecoderPointer)> then_map(const std::string& output,
                                                               const std::string& what,
                                                               nanobind::handle map);

void bind_map(nanobind::module_& m);

}  // namespace headrace::py
