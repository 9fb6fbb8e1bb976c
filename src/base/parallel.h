// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "base/status.h"

namespace headrace {

// Calls job(0), …, job(count - 1), each once, on up to `threads` threads of its own that end
// before it returns.  After the first failure no new job starts; that failure is returned
// (the one of the lowest number, so that the same data give the same error).
Status parallel_for(size_t count, unsigned threads, const std::function<Status(size_t)>& job);

}  // namespace headrace
