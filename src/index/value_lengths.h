// SPDX-License-Identifier: Apache-2.0
//
// How long the values of a field are, as far as the index knows without reading them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "index/source.h"

namespace headrace {

// Elements of `item_bytes` of the value of every sample; 0 where it has none.  Nothing where the
// index does not say it: values in units that open as a whole, of unknown size, or several a
// sample.
Result<std::optional<std::vector<uint32_t>>> value_lengths(const Source& source, uint32_t field,
                                                           uint64_t item_bytes,
                                                           const std::atomic<bool>* cancel);

}  // namespace headrace
