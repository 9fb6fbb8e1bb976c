// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <type_traits>

#include "base/status.h"

namespace headrace {

// Calls `f`, which returns a Status or a Result, and turns whatever it throws
// into a Status.  Used in two places only: around a third-party library that
// throws, and at the top of a thread.
template <typename F>
auto guard(F&& f) -> std::invoke_result_t<F> {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return exhausted("out of memory");
  } catch (const std::exception& e) {
    return internal(e.what());
  } catch (...) {
    return internal("unknown exception");
  }
}

}  // namespace headrace
