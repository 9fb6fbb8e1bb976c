// SPDX-License-Identifier: Apache-2.0
//
// The arguments of these programs: name=value for the options they know, paths for the rest; and
// the main() of those that take options alone.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

using Options = std::map<std::string, std::string>;

// Replaces the values of `options` that are given; returns what is no option.
inline std::vector<std::string> read_arguments(int argc, char** argv, Options& options) {
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t eq = arg.find('=');
    if (eq != std::string::npos && options.contains(arg.substr(0, eq)))
      options[arg.substr(0, eq)] = arg.substr(eq + 1);
    else
      paths.push_back(arg);
  }
  return paths;
}

// "1,2,4" is three.
inline std::vector<std::string> pieces(const std::string& s) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= s.size();) {
    const size_t end = std::min(s.find(',', at), s.size());
    out.push_back(s.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Runs with the arguments; what failed is said, and is the exit status.
inline int run_program(int argc, char** argv, Options options, Status (*run)(Options&)) {
  read_arguments(argc, argv, options);
  const Status status = run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  return 1;
}

}  // namespace headrace
