// SPDX-License-Identifier: Apache-2.0
//
// The parameters of steps and fields, with their defaults, as the code that takes them says: this
// is the only place where they stand.  Python's methods (tools/make_steps.py), the reference and
// the tests are made from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transform/params.h"
#include "transform/transform.h"

namespace headrace {

struct ParamInfo {
  std::string name;
  std::string_view type;               // "number", "integer", "flag", "text", "numbers", "integers"
  std::optional<Param> fallback = {};  // unset: it must be given
  std::vector<std::string> words = {};  // texts that it may be besides
};

// While one lives, what this thread takes of any Params is noted.  They do not nest.
class ParamRecorder {
 public:
  ParamRecorder();
  ~ParamRecorder();
  ParamRecorder(const ParamRecorder&) = delete;
  ParamRecorder& operator=(const ParamRecorder&) = delete;
  std::vector<ParamInfo> taken() && { return std::move(taken_); }

  // The one that lives in this thread; null: none.
  static ParamRecorder* current();
  // A take within a take is the same one.
  void note(const std::string& name, std::string_view type, std::optional<Param> fallback);
  void note_word(const std::string& name, std::string_view word);

 private:
  std::vector<ParamInfo> taken_;
};

// In the order in which they are taken.
std::vector<ParamInfo> parameters_of(const TransformEntry& step);
// The options of a field: "image", "boxes", …
std::vector<ParamInfo> options_of(const std::string& what);
// Of a step of arrays: "normalize", "random_flip", "cast".
std::vector<ParamInfo> parameters_of_array_step(const std::string& step);

}  // namespace headrace
