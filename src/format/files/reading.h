// SPDX-License-Identifier: Apache-2.0
//
// How a list or table is to be read, where its bytes alone do not say: what stands behind the
// path of the list, as `x.csv#header=no&separator=semicolon&table=yes`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace headrace {

struct ListReading {
  std::optional<char> separator = {};   // of CSV; else found out
  std::optional<bool> header = {};      // whether line 1 names the columns; else found out
  std::vector<std::string> names = {};  // of the columns of a file without a header
  std::optional<bool> table = {};       // rows are values, not names of files; else found out

  // `separator=,` `header=yes|no|a,b,c` `table=yes|no`, joined by '&', bytes as %3B.
  static Result<ListReading> parse(std::string_view part);
};

// ";" is "semicolon", for messages that say what to type.
std::string separator_text(char separator);

}  // namespace headrace
