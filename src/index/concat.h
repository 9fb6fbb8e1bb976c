// SPDX-License-Identifier: Apache-2.0
//
// Concatenated: the samples of several data sets, one after the other, which may lie in different
// stores.  Fields are those of all of them; a sample lacks those that its part does not have.
#pragma once

#include <memory>
#include <vector>

#include "index/source.h"

namespace headrace {

// At least two.  A name that holds values of two kinds, and arrays that not all parts have, are
// kInvalidArgument; pictures of several kinds are not.
Result<std::shared_ptr<const Source>> concat_sources(
    std::vector<std::shared_ptr<const Source>> parts);

}  // namespace headrace
