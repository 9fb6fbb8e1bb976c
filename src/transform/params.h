// SPDX-License-Identifier: Apache-2.0
//
// Params: the keyword arguments a user wrote, read once and checked once.
//
//   const double p = params.take_number("p", 0.5);
//   HEADRACE_TRY(params.done());      // a wrong type, a missing or an unknown name
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace headrace {

using Param = std::variant<bool, int64_t, double, std::string, std::vector<double>>;

// One thread at a time.  A take that fails gives its fallback; done() tells of it.
class Params {
 public:
  Params() = default;
  explicit Params(std::map<std::string, Param> values) : values_(std::move(values)) {}

  // Each removes `name` and returns it, or `fallback` when the user left it out.
  double take_number(const std::string& name, double fallback);
  bool take_flag(const std::string& name, bool fallback);
  std::string take_text(const std::string& name, std::string fallback);
  // A single number is a list of one.
  std::vector<double> take_numbers(const std::string& name, std::vector<double> fallback);
  std::vector<int> take_integers(const std::string& name, std::vector<int> fallback);
  int take_integer(const std::string& name, int fallback);
  // Whether it is this text; other values stay, for the next take.
  bool take_word(const std::string& name, std::string_view word);
  // Likewise, of whole numbers within int; must be there.
  std::vector<int> need_integers(const std::string& name);
  std::vector<double> need_numbers(const std::string& name);
  std::string need_text(const std::string& name);

  // Call after the last take: whatever is left is a typo.
  Status done() const;

  bool operator==(const Params& other) const { return values_ == other.values_; }
  const std::map<std::string, Param>& values() const { return values_; }

 private:
  bool find(const std::string& name, Param& out);
  void wrong(const std::string& name, std::string_view wanted);
  void missing(const std::string& name);

  std::map<std::string, Param> values_;
  std::vector<std::string> known_;  // the names asked for, in order
  std::string problem_;             // the first
};

// The one of `names` that `word` was meant to be, or "" when none is near: at most two letters
// wrong, and fewer than half of them.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names);

}  // namespace headrace
