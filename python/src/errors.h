// SPDX-License-Identifier: Apache-2.0
//
// The one place where a Status becomes a Python exception (headrace/errors.py has the types).
#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"

namespace headrace::py {

struct StatusError {
  Status status;
};

// Bindings call unwrap() or check() on whatever the core returned, and nothing else.
template <typename T>
T unwrap(Result<T> r) {
  if (!r.ok()) throw StatusError{r.status()};
  return std::move(r).value();
}

inline void check(const Status& s) {
  if (!s.ok()) throw StatusError{s};
}

void bind_errors(nanobind::module_& m);

}  // namespace headrace::py
