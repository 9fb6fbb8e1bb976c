// SPDX-License-Identifier: Apache-2.0
#include "format/files/json_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace headrace {
namespace {

constexpr int kMaxDepth = 64;

}  // namespace

Status JsonLine::members(std::vector<Cell>& out) {
  space();
  if (Status status = object("", 0, out); !status.ok())
    return !rest_.empty() ? status
                          : corrupt(
                                "the JSON object does not end on this line; in JSON lines each "
                                "has a line of its own, as `jq -c .` writes it");
  space();
  return rest_.empty() ? Status() : corrupt("text after the JSON object");
}

// Members of the object that begins here; `prefix` is before their names.
Status JsonLine::object(const std::string& prefix, int depth, std::vector<Cell>& out) {
  if (!take('{'))
    return corrupt("not a JSON object; write each record as one, such as {\"text\": \"…\"}");
  if (depth > kMaxDepth) return corrupt("JSON that nests too deep");
  for (bool more = !closes('}'); more;) {
    space();
    std::string_view name;
    HEADRACE_TRY(string(name));
    space();
    if (!take(':')) return corrupt("a ':' is missing in the JSON");
    space();
    if (!prefix.empty()) name = decoded_.emplace_back(prefix + std::string(name));
    if (flatten_ && rest_.starts_with('{')) {
      HEADRACE_TRY(object(std::string(name) + '.', depth + 1, out));
    } else {
      Cell cell{.column = name};
      bool present = true;
      HEADRACE_TRY(value(cell, present));
      if (present) out.push_back(cell);
    }
    space();
    more = take(',');
    if (!more && !take('}')) return corrupt("a ',' or '}' is missing in the JSON");
  }
  return {};
}

void JsonLine::space() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
}
bool JsonLine::take(char c) {
  if (!rest_.starts_with(c)) return false;
  rest_.remove_prefix(1);
  return true;
}
bool JsonLine::closes(char c) {
  space();
  return take(c);
}
bool JsonLine::word(std::string_view w) {
  if (!rest_.starts_with(w)) return false;
  rest_.remove_prefix(w.size());
  return true;
}

Status JsonLine::value(Cell& cell, bool& present) {
  const std::string_view start = rest_;
  if (rest_.starts_with('"')) {
    cell.type = Cell::Type::kText;
    return string(cell.text);
  }
  if (rest_.starts_with('{') || rest_.starts_with('[')) {
    HEADRACE_TRY(skip_nested());
    cell.type = Cell::Type::kJson;
    cell.text = start.substr(0, start.size() - rest_.size());
    return {};
  }
  if (word("null")) {
    present = false;
    return {};
  }
  const bool yes = word("true");
  if (yes || word("false")) {
    cell = make_cell(cell.column, yes ? "1" : "0");
    cell.text = yes ? "true" : "false";  // beside texts it is one
    return {};
  }
  // Python's json writes these three, which no standard has.
  for (const auto& [written, read] : {std::pair<std::string_view, std::string_view>{"NaN", "nan"},
                                      {"Infinity", "inf"},
                                      {"-Infinity", "-inf"}})
    if (word(written)) {
      cell = make_cell(cell.column, read);
      cell.text = written;
      return {};
    }
  return number(cell);
}

Status JsonLine::number(Cell& cell) {
  const size_t end = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
  const Cell made = make_cell(cell.column, rest_.substr(0, end));
  // Digits beyond 64 bits stay a text, as in a CSV file: hashes are written so.
  const std::string_view digits = made.text.substr(made.text.starts_with('-') ? 1 : 0);
  const bool is_integer =
      !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (end == 0 || (made.type == Cell::Type::kText && !is_integer))
    return corrupt(fmt::format("no JSON value: '{}'", rest_.substr(0, std::max<size_t>(end, 1))));
  cell = made;
  rest_.remove_prefix(end);
  return {};
}

// Strings and brackets are checked, what is between them is not: it stays text.
Status JsonLine::skip_nested() {
  std::string open;
  do {
    const char c = rest_.empty() ? '\0' : rest_[0];
    if (c == '"') {
      std::string_view ignored;
      HEADRACE_TRY(string(ignored));
      continue;
    }
    if (rest_.empty()) return corrupt("brackets of the JSON do not close");
    rest_.remove_prefix(1);
    if (c == '{' || c == '[') open += c;
    if (open.size() > kMaxDepth) return corrupt("JSON that nests too deep");
    if (c == '}' || c == ']') {
      if (open.back() != (c == '}' ? '{' : '['))
        return corrupt("brackets of the JSON do not match");
      open.pop_back();
    }
  } while (!open.empty());
  return {};
}

Status JsonLine::string(std::string_view& out) {
  const std::string_view start = rest_;
  if (!take('"')) return corrupt("a '\"' is missing in the JSON");
  const size_t plain = std::min(rest_.find_first_of("\"\\"), rest_.size());
  if (plain < rest_.size() && rest_[plain] == '"') {
    out = rest_.substr(0, plain);
    rest_.remove_prefix(plain + 1);
    return {};
  }
  rest_ = start;
  std::string& text = decoded_.emplace_back();
  HEADRACE_TRY(take_json_string(rest_, text));
  out = text;
  return {};
}

}  // namespace headrace
