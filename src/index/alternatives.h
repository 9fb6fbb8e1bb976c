// SPDX-License-Identifier: Apache-2.0
//
// Alternatives: a data set with a few fields more, each the first of several that a sample has.
//
//   base     jpg: jpeg   png: png   cls: int        (a sample has one of the two pictures)
//   "image" of (jpg, png)  ──►  image: bytes, or jpeg where both are
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/source.h"

namespace headrace {

struct Alternative {
  std::string name;             // of the new field; the base has none of this name
  std::vector<std::string> of;  // fields of the base, in the order they are looked for
  bool replaces = false;        // those are hidden, and the new one stands where the first stood
};

// An unknown field and fields whose values cannot stand for one another are kInvalidArgument.
Result<std::shared_ptr<const Source>> with_alternatives(std::shared_ptr<const Source> base,
                                                        std::vector<Alternative> alternatives);

}  // namespace headrace
