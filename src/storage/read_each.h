// SPDX-License-Identifier: Apache-2.0
//
// Store::read() of stores that read in the calling thread, one request after the other.
#pragma once

#include <span>
#include <utility>

#include "storage/store.h"

namespace headrace {

// `read_one(request)` fills it and gives the status it completes with.
template <typename F>
void read_each(std::span<ReadRequest> requests, const F& read_one) {
  for (ReadRequest& request : requests) {
    if (request.is_cancelled()) {
      complete_cancelled(std::move(request));
      continue;
    }
    mark_sent(request);
    Status status = read_one(request);
    complete(std::move(request), std::move(status));
  }
}

}  // namespace headrace
