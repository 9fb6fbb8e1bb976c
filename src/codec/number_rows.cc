// SPDX-License-Identifier: Apache-2.0
#include "codec/number_rows.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "codec/json.h"

namespace headrace {
namespace {

// Walks over text that check_json() has found good: brackets match, strings end.
class RowReader {
 public:
  RowReader(std::string_view text, const RowNames& names) : text_(text), names_(names) {}

  Result<std::vector<double>> run() {
    space();
    if (text_.substr(at_, 4) == "null") return std::move(out_);
    if (!take('[')) return wrong("a list of rows is wanted");
    while (!take(']')) {
      HEADRACE_TRY(row());
      take(',');
    }
    return std::move(out_);
  }

 private:
  Status wrong(const std::string& what) const { return corrupt(what).at(at_); }
  void space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    space();
    return true;
  }

  Status row() {
    const size_t first = out_.size();
    out_.resize(first + names_.width(), std::numeric_limits<double>::quiet_NaN());
    if (take('[')) return numbers(first, names_.width());
    if (!take('{')) return wrong("a row is a list of numbers or an object");
    size_t found = 0;
    while (!take('}')) {
      HEADRACE_ASSIGN(const bool known, member(first));
      found += known ? 1 : 0;
      take(',');
    }
    if (found == 1 + names_.extra.size()) return {};
    return wrong("an object lacks '" + missing(first) + "'");
  }

  // The name of the first member that is not there.
  std::string missing(size_t first) const {
    if (out_[first] != out_[first]) return names_.list;
    for (size_t i = 0; i < names_.extra.size(); ++i)
      if (out_[first + names_.lead + i] != out_[first + names_.lead + i]) return names_.extra[i];
    return names_.list;
  }

  Result<bool> member(size_t first) {
    const std::string_view name = string();
    take(':');
    if (name == names_.list) {
      if (!take('[')) return wrong("'" + names_.list + "' is not a list");
      HEADRACE_TRY(numbers(first, names_.lead));
      return true;
    }
    const auto extra = std::find(names_.extra.begin(), names_.extra.end(), name);
    if (extra == names_.extra.end()) {
      skip();
      return false;
    }
    HEADRACE_ASSIGN(out_[first + names_.lead + static_cast<size_t>(extra - names_.extra.begin())],
                    number());
    return true;
  }

  Status numbers(size_t first, size_t wanted) {
    size_t n = 0;
    for (; !take(']'); ++n) {
      if (n == wanted) return wrong("a row has more than " + std::to_string(wanted) + " numbers");
      HEADRACE_ASSIGN(out_[first + n], number());
      take(',');
    }
    return n == wanted ? Status()
                       : wrong("a row has " + std::to_string(n) + " numbers, not " +
                               std::to_string(wanted));
  }

  Result<double> number() {
    space();
    double value = 0;
    const char* end = text_.data() + text_.size();
    const auto [p, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) return wrong("a number is wanted");
    at_ = static_cast<size_t>(p - text_.data());
    return value;
  }

  // The inside of a string, escapes as they are.
  std::string_view string() {
    space();
    const size_t from = ++at_;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    return text_.substr(from, at_++ - from);
  }

  void skip() {
    int depth = 0;
    do {
      space();
      const char c = text_[at_];
      if (c == '"') {
        string();
      } else {
        if (c == '[' || c == '{') ++depth;
        if (c == ']' || c == '}') --depth;
        ++at_;
        // A scalar ends before a comma or a bracket.
        while (depth == 0 && c != ']' && c != '}' && at_ < text_.size() &&
               std::string_view(",]}").find(text_[at_]) == std::string_view::npos)
          ++at_;
      }
    } while (depth > 0);
  }

  const std::string_view text_;
  const RowNames& names_;
  size_t at_ = 0;
  std::vector<double> out_;
};

}  // namespace

Result<std::vector<double>> read_rows(Bytes json, const RowNames& names) {
  if (json.empty()) return std::vector<double>{};
  HEADRACE_TRY(check_json(json));
  return RowReader({reinterpret_cast<const char*>(json.data()), json.size()}, names).run();
}

}  // namespace headrace
