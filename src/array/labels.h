// SPDX-License-Identifier: Apache-2.0
//
// Where labels lie in volumes, found once: for patches that are to hold some of them.
#pragma once

#include <functional>

#include "array/array_source.h"

namespace headrace {

// Of each class of each case so many places are kept at most, drawn from all it has: the same ones
// however the array lies.
inline constexpr size_t kMostLabelPlaces = 256;
inline constexpr size_t kMostLabelClasses = 64;

// Calls job(0), …, job(count - 1), on threads or not.
using RunJobs = std::function<Status(size_t count, const std::function<Status(size_t)>& job)>;

// Reads all segments of the variable once, piece by piece.  A class is a value that is not 0 (nor
// NaN), classes in the order of their values; places are indexes on the last `axes` axes.
Result<std::vector<LabelPlaces>> find_labels(const ArrayDescription& description, uint32_t variable,
                                             size_t axes, const Store& store, const RunJobs& run);

}  // namespace headrace
