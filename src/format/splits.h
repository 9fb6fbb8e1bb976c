// SPDX-License-Identifier: Apache-2.0
//
// Splits: parts of a data set that people keep apart by a word in names: train, val, test.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace headrace {

// Whether a name is one of those words, whatever its case.
bool is_split_name(std::string_view name);

// The word in a name, as it is written: "train" of "train-00000-of-00002" and of "x_train"; ""
// where there is none.  Words end where letters end.
std::string split_in_name(std::string_view name);

// A name without its split: "train_images" and "images_train" are "images"; "train" is "".
std::string without_split(std::string_view name);

// The error of opening all splits as one, with what to type.
Status which_split(std::string_view path, std::span<const std::string> splits);

}  // namespace headrace
