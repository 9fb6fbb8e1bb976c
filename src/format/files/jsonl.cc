// SPDX-License-Identifier: Apache-2.0
//
// JSON lines: one object a line (RFC 8259).
//
//   a list    a member names a file that is there, the others are values beside it
//   a table   else: every member is a value, those of objects by dotted names ("meta.lang")
//
// Arrays stay JSON text, as do objects of a list; null is absent.

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/json.h"
#include "format/files/lists.h"

namespace headrace {
namespace {

constexpr int kMaxDepth = 64;

// One line.  Bounded: each step takes bytes off, nesting is limited.  One thread at a time.
class JsonLine {
 public:
  JsonLine(std::string_view line, bool flatten) : rest_(line), flatten_(flatten) {}

  // The members of the object that the line is.  Views live as long as this and the line.
  Status members(std::vector<Cell>& out) {
    space();
    HEADRACE_TRY(object("", 0, out));
    space();
    return rest_.empty() ? Status() : corrupt("text after the JSON object");
  }

 private:
  // Members of the object that begins here; `prefix` is before their names.
  Status object(const std::string& prefix, int depth, std::vector<Cell>& out) {
    if (!take('{')) return corrupt("not a JSON object");
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

  void space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool closes(char c) {
    space();
    return take(c);
  }
  bool word(std::string_view w) {
    if (!rest_.starts_with(w)) return false;
    rest_.remove_prefix(w.size());
    return true;
  }

  Status value(Cell& cell, bool& present) {
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
    return number(cell);
  }

  Status number(Cell& cell) {
    const size_t end = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
    const Cell made = make_cell(cell.column, rest_.substr(0, end));
    // 2^64 and more make a text of make_cell(); JSON knows only numbers, and says so.
    if (end == 0 || made.type == Cell::Type::kText)
      return corrupt(fmt::format("no JSON value, or a number beyond 64 bits: '{}'",
                                 rest_.substr(0, std::max<size_t>(end, 1))));
    cell = made;
    rest_.remove_prefix(end);
    return {};
  }

  // Strings and brackets are checked, what is between them is not: it stays text.
  Status skip_nested() {
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

  Status string(std::string_view& out) {
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

  std::string_view rest_;
  const bool flatten_;
  std::deque<std::string> decoded_;  // strings that had escapes, and dotted names
};

// What the first line says of all of them.
struct LineForm {
  bool known = false;
  std::string path;  // the member that names the file; "" in a table
};

LineForm form_of(std::string_view text, const ListInput& input) {
  LineForm out{.known = true, .path = {}};
  JsonLine parser(text, false);
  std::vector<Cell> cells;
  if (!parser.members(cells).ok()) return out;  // said where the line is read
  std::vector<std::string_view> names, texts;
  for (const Cell& cell : cells) {
    if (cell.type != Cell::Type::kText) continue;
    names.push_back(cell.column);
    texts.push_back(cell.text);
  }
  if (const std::optional<size_t> at = path_column(names, texts, input); at && *at < names.size())
    out.path = names[*at];
  return out;
}

Status read_line(std::string_view text, uint64_t line, const LineForm& form,
                 std::vector<Cell>& cells, const RowFunction& row) {
  JsonLine parser(text, form.path.empty());
  cells.clear();
  HEADRACE_TRY(parser.members(cells));
  if (form.path.empty()) {
    std::vector<std::string_view> names;
    for (const Cell& cell : cells) names.push_back(cell.column);
    return row({line, {}, cells, true, names});
  }
  const auto at = std::find_if(cells.begin(), cells.end(),
                               [&form](const Cell& cell) { return cell.column == form.path; });
  if (at == cells.end())
    return corrupt(fmt::format("no '{}', which names the file in the lines before", form.path));
  if (at->type != Cell::Type::kText)
    return corrupt(fmt::format("member '{}' is no path", form.path));
  const std::string_view path = at->text;
  cells.erase(at);
  return row({line, path, cells});
}

}  // namespace

Status read_jsonl(Bytes list, const ListInput& input, const RowFunction& row) {
  std::string_view rest = as_text(list);
  std::vector<Cell> cells;
  LineForm form;
  for (uint64_t line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!form.known) form = form_of(text, input);
    if (Status s = read_line(text, line, form, cells, row); !s.ok()) {
      // index_list() names the line of its own objections itself.
      return s.message().starts_with("line ") ? s : s.with(fmt::format("line {}", line));
    }
  }
  return {};
}

}  // namespace headrace
