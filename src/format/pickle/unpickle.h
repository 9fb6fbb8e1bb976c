// SPDX-License-Identifier: Apache-2.0
//
// Unpickling without executing: protocols 0 to 5, and of those only None, bool, int,
// float, str, bytes, list, tuple, dict and set, and NumPy's arrays where they are wanted.
// Whatever else would call or import something is refused by name.  Nothing recurses; memory
// is at most some 40 times the input.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace headrace {

inline constexpr uint64_t kMaxPickleBytes = uint64_t{1} << 30;

struct PickleNode {
  enum class Type : uint8_t {
    kNone,
    kBool,
    kInt,
    kBigInt,
    kFloat,
    kText,
    kBytes,
    kList,
    kTuple,
    kDict,
    kSet,
    // Of NumPy; pickle_numpy.h makes them.
    kGlobal,  // a name that stands for one of its functions: `integer` says which
    kDType,   // `text` is its code ("f4"), `order` its byte order
    kArray    // `items`: shape (a tuple), type and bytes; `integer`: in Fortran order
  };
  Type type = Type::kNone;
  uint32_t items = 0;     // of a container: number in Pickle::items
  int64_t integer = 0;    // kBool, kInt
  double number = 0;      // kFloat
  std::string_view text;  // kText, kBytes
  char order = '|';       // kDType: < > | =
  // Of bytes that the file holds as text (protocols 0 to 2 of Python 3): that text.
  std::string_view encoded = {};
};

enum class PickleWants { kPlain, kArrays };

// Nodes refer to each other by number; a container may hold itself.
struct Pickle {
  std::vector<PickleNode> nodes;
  std::vector<std::vector<uint32_t>> items;  // of a dict: key, value, key, value, …
  std::deque<std::string> texts;             // that had to be decoded
  uint32_t root = 0;
};

// Views into `bytes`, which outlives the result.
Result<Pickle> unpickle(Bytes bytes, PickleWants wants = PickleWants::kPlain);

}  // namespace headrace
