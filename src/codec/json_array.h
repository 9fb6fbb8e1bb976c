// SPDX-License-Identifier: Apache-2.0
//
// Lists of numbers in JSON as arrays: [1, 2, 3], [[0.5, 1], [2, 3]].  Lists within lists must be of
// one length.  true and false are 1 and 0; NaN, Infinity and -Infinity are taken, as Python's json
// writes them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace headrace {

struct JsonArray {
  bool has_truth_values = false;  // true and false are 1 and 0
  bool is_real = false;           // a number has a fraction or an exponent, or is no number
  std::vector<int64_t> shape = {};
  std::vector<int64_t> integers = {};  // all of them, where none is real
  std::vector<double> reals = {};      // else

  size_t size() const { return is_real ? reals.size() : integers.size(); }
  // All as reals.  kInvalidArgument where one is beyond 2^53, which a double does not hold exactly.
  Status make_real();
};

// Whether a list begins after white space.
bool begins_json_list(Bytes value);
// What is no such list is kCorrupt at the first wrong byte.
Result<JsonArray> parse_json_array(Bytes value);

}  // namespace headrace
