// SPDX-License-Identifier: Apache-2.0
//
// Statistics of whole arrays, chunk by chunk on several threads.  Each chunk is read and opened
// once; what chunks give is put together in their order, so the result does not depend on threads.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "array/array_source.h"
#include "array/moments.h"

namespace headrace {

struct StatsOptions {
  std::optional<size_t> per = {};  // the axis whose indexes are kept apart
  size_t threads = 1;
  // Called by the calling thread, now and then: pieces done, of so many.
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  const std::atomic<bool>* cancel = nullptr;
};

// Of all segments of one variable; one, or one for each index of `per`, over the segments where
// that is the axis they lie along.
Result<std::vector<Moments>> array_stats(const ArrayDescription& description, uint32_t variable,
                                         const Store& store, const StatsOptions& options);

}  // namespace headrace
