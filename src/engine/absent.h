// SPDX-License-Identifier: Apache-2.0
//
// AbsentValue: what a sample that lacks a field gets in its place.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "codec/decoder.h"

namespace headrace {

// Immutable, hence thread-safe.
struct AbsentValue {
  // Decodes `stored` in place of the sample's value.  Null: the slot of a list stays empty.
  std::shared_ptr<const Decoder> decoder;
  std::vector<std::byte> stored;
};

}  // namespace headrace
