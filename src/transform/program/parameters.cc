// SPDX-License-Identifier: Apache-2.0
#include "transform/parameters.h"

#include <algorithm>

#include "transform/program/program.h"

namespace headrace {
namespace {

std::vector<ParamInfo> recorded(const FieldSpec& spec) {
  ParamRecorder recorder;
  (void)make_decoder(spec);  // fails where something must be given, after all was asked for
  return std::move(recorder).taken();
}

}  // namespace

std::vector<ParamInfo> parameters_of(const TransformEntry& step) {
  ParamRecorder recorder;
  (void)step.make({});
  return std::move(recorder).taken();
}

std::vector<ParamInfo> options_of(const std::string& what) {
  return recorded({.name = what, .what = what});
}

std::vector<ParamInfo> parameters_of_array_step(const std::string& step) {
  const std::vector<ParamInfo> options = options_of("array");
  std::vector<ParamInfo> out =
      recorded({.name = "array", .what = "array", .steps = {{step, Params()}}});
  std::erase_if(out, [&](const ParamInfo& p) {
    return std::any_of(options.begin(), options.end(),
                       [&](const ParamInfo& o) { return o.name == p.name && step != "cast"; });
  });
  if (step == "cast") std::erase_if(out, [](const ParamInfo& p) { return p.fallback.has_value(); });
  return out;
}

}  // namespace headrace
