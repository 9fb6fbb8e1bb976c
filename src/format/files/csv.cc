// SPDX-License-Identifier: Apache-2.0
//
// CSV (RFC 4180): a header, then as many cells in every row.  Quoted cells hold
// separators, line ends, and quotes written twice.

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "format/files/lists.h"
#include "index/names.h"

namespace headrace {
namespace {

// Takes rows off a text.  One thread at a time.
class CsvReader {
 public:
  CsvReader(std::string_view text, char separator) : rest_(text), separator_(separator) {}

  uint64_t line() const { return row_line_; }
  const std::vector<std::string_view>& cells() const { return cells_; }
  // Blank lines are skipped.  False at the end.
  Result<bool> next() {
    do {
      if (rest_.empty()) return false;
      HEADRACE_TRY(row());
    } while (cells_.size() == 1 && cells_[0].empty());
    return true;
  }

 private:
  Status row() {
    cells_.clear();
    unquoted_.clear();
    row_line_ = line_;
    for (bool more = true; more;) {
      if (rest_.starts_with('"'))
        HEADRACE_TRY(quoted());
      else
        plain();
      more = rest_.starts_with(separator_);
      if (more) rest_.remove_prefix(1);
    }
    if (rest_.starts_with('\r')) rest_.remove_prefix(1);
    if (!rest_.empty() && rest_[0] != '\n')
      return corrupt("text after a closing quote").with(fmt::format("line {}", line_));
    if (!rest_.empty()) rest_.remove_prefix(1);
    ++line_;
    return {};
  }

  void plain() {
    size_t end = 0;
    while (end < rest_.size() && rest_[end] != separator_ && rest_[end] != '\n') ++end;
    std::string_view cell = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (cell.ends_with('\r') && (rest_.empty() || rest_[0] == '\n')) cell.remove_suffix(1);
    cells_.push_back(cell);
  }

  Status quoted() {
    std::string& cell = unquoted_.emplace_back();
    rest_.remove_prefix(1);
    for (;;) {
      const size_t quote = rest_.find('"');
      if (quote == std::string_view::npos)
        return corrupt("a quote that is never closed").with(fmt::format("line {}", row_line_));
      cell += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      cell += '"';
      rest_.remove_prefix(1);
    }
    line_ += static_cast<uint64_t>(std::count(cell.begin(), cell.end(), '\n'));
    cells_.push_back(cell);
    return {};
  }

  std::string_view rest_;
  const char separator_;
  uint64_t line_ = 1;
  uint64_t row_line_ = 1;
  std::vector<std::string_view> cells_;
  std::deque<std::string> unquoted_;  // what cells_ views of quoted cells point into
};

Status check_names(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return corrupt(fmt::format("line 1: column {} has no name", i + 1));
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      return corrupt(fmt::format("line 1: two columns are named '{}'", names[i]));
  }
  return {};
}

// White space around numbers is no text.
std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

bool looks_like_file(std::string_view text) {
  return make_cell("", trimmed(text)).type == Cell::Type::kText &&
         (!split_name(text).extension.empty() || text.find('/') != std::string_view::npos);
}

// Taken for a header, the first row of a list that has none would be lost in silence.
Status check_header(std::span<const std::string_view> names, size_t path) {
  if (looks_like_file(names[path]))
    return corrupt(
        fmt::format("line 1 is no header: '{}' looks like a file; name the columns, the "
                    "one with the files 'path'",
                    names[path]));
  if (std::all_of(names.begin(), names.end(), [](std::string_view name) {
        return make_cell("", trimmed(name)).type != Cell::Type::kText;
      }))
    return corrupt("line 1 is no header: its cells are numbers; name the columns");
  return {};
}

}  // namespace

Status read_csv(Bytes list, char separator, const RowFunction& row) {
  CsvReader reader(as_text(list), separator);
  HEADRACE_ASSIGN(const bool any, reader.next());
  if (!any) return corrupt("no header line");
  const std::vector<std::string> names(reader.cells().begin(), reader.cells().end());
  if (names.size() > kMaxFields) return corrupt("too many columns");
  HEADRACE_TRY(check_names(names));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const size_t path = path_column(views);
  HEADRACE_TRY(check_header(views, path));
  // Where no column is called a path and the first row has none in the first: a table.
  bool is_table = !is_path_name(names[path]);
  bool first = true;
  std::vector<Cell> cells;
  for (;;) {
    HEADRACE_ASSIGN(const bool more, reader.next());
    if (!more) return {};
    const std::vector<std::string_view>& texts = reader.cells();
    if (texts.size() != names.size())
      return corrupt(fmt::format("line {}: {} cells, the header has {}", reader.line(),
                                 texts.size(), names.size()));
    if (first) is_table = is_table && !looks_like_file(texts[path]);
    first = false;
    cells.clear();
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string_view text = is_table ? trimmed(texts[i]) : texts[i];
      if ((is_table || i != path) && !text.empty()) cells.push_back(make_cell(views[i], text));
    }
    if (is_table)
      HEADRACE_TRY(row({reader.line(), {}, cells, views}));
    else
      HEADRACE_TRY(row({reader.line(), texts[path], cells}));
  }
}

}  // namespace headrace
