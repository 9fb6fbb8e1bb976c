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

#include "format/files/json_line.h"
#include "format/files/lists.h"

namespace headrace {
namespace {

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
