// SPDX-License-Identifier: Apache-2.0
//
// How often each level occurs in the pictures of a data set: what their mean and standard deviation
// are made of.  Counts are integers, so the result is the same on any number of threads.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "loader/dataset.h"
#include "loader/scan.h"

namespace headrace {

using Levels = std::array<uint64_t, 256>;  // of one channel

// Of these samples of a data set with one field, u8 pictures with the channels last; one Levels a
// channel.  Progress counts samples.  Pictures of another number of channels than the first are
// kInvalidArgument; samples that cannot be decoded are what Dataset::at() says of them.
Result<std::vector<Levels>> picture_levels(const Dataset& dataset,
                                           std::span<const uint64_t> samples,
                                           const ScanOptions& options = {});

}  // namespace headrace
