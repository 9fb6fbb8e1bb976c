// SPDX-License-Identifier: Apache-2.0
//
// Rows of numbers out of JSON, as annotations come: a list of lists, or a list of objects.
//
//   [[10, 20, 50, 80, 3], …]
//   [{"bbox": [10, 20, 50, 80], "category_id": 3, …}, …]
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

struct RowNames {
  std::string list;                // the member that holds the first `lead` numbers
  std::vector<std::string> extra;  // members with one number each, after them
  size_t lead = 4;

  size_t width() const { return lead + extra.size(); }
};

// All rows one after the other, each width() numbers.  "" and null are no row.
// What does not fit is kCorrupt with its offset.
Result<std::vector<double>> read_rows(Bytes json, const RowNames& names);

}  // namespace headrace
