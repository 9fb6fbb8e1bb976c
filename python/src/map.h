// SPDX-License-Identifier: Apache-2.0
//
// `.map(fn)`: a Python function as the last step of a field.  It runs on the compute
// threads, one at a time because of the GIL; what it costs is counted.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <string>

#include "loader/field.h"

namespace headrace::py {

// Counted over all threads; read by loader.stats().
struct MapCost {
  std::atomic<uint64_t> calls{0}, busy_ns{0}, gil_ns{0};
};

// A function, and what it gave for the first sample.
struct MapFunction {
  nanobind::object function;
  std::string result;  // "array", "text" or "bytes"
  std::string numpy;   // of an array: the name of NumPy's type
  TensorSpec output;
  nanobind::object cost;  // a MapCost
};

// `what`: of the field whose value the function gets.
std::function<Result<DecoderPointer>(DecoderPointer)> then_map(const std::string& what,
                                                               const MapFunction& map);

void bind_map(nanobind::module_& m);

}  // namespace headrace::py
