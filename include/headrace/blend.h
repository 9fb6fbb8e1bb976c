// SPDX-License-Identifier: Apache-2.0
//
// Blend: several data sets drawn from in proportion, exactly, for ever.
//
//   hr::Blend blend{{{"web", hr::open("web-*.tar"), 0.7}, {"books", hr::open("books"), 0.3}}};
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/dataset.h"

namespace hr {

struct BlendPart {
  std::string name;  // names its order and its draws
  Dataset data;
  double weight = 1;
  // What to make of its fields; none: those of the loader.  All parts give the same outputs, each
  // from fields and by steps of its own.
  Fields fields = {};
};

struct Blend {
  std::vector<BlendPart> parts;
  uint64_t epoch_samples = 0;  // draws of an epoch; 0: the samples of all parts together
};

}  // namespace hr
