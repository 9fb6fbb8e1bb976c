// SPDX-License-Identifier: Apache-2.0
//
// JsonLine: one line of JSON lines, taken apart into the members of its object.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/files/lists.h"

namespace headrace {

// Bounded: each step takes bytes off, nesting is limited.  One thread at a time.
class JsonLine {
 public:
  // `flatten`: objects give their members, by dotted names; else they stay JSON text.
  JsonLine(std::string_view line, bool flatten) : rest_(line), flatten_(flatten) {}

  // The members of the object that the line is.  Views live as long as this and the line.
  Status members(std::vector<Cell>& out);

 private:
  Status object(const std::string& prefix, int depth, std::vector<Cell>& out);
  void space();
  bool take(char c);
  bool closes(char c);
  bool word(std::string_view w);
  Status value(Cell& cell, bool& present);
  Status number(Cell& cell);
  Status skip_nested();
  Status string(std::string_view& out);

  std::string_view rest_;
  const bool flatten_;
  std::deque<std::string> decoded_;  // strings that had escapes, and dotted names
};

}  // namespace headrace
