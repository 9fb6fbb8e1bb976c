// SPDX-License-Identifier: Apache-2.0
//
// CSV (RFC 4180) and its kin: rows of equally many cells, mostly with a header.  Quoted cells hold
// separators, line ends, and quotes written twice.  Cells stay as they are written.
//
// What the bytes do not say is found out from the first rows (csv_guess.cc), or said by the user.

#include "format/files/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/files/lists.h"
#include "index/names.h"

namespace headrace {

Result<bool> CsvReader::next() {
  do {
    if (rest_.empty()) return false;
    HEADRACE_TRY(row());
  } while (cells_.size() == 1 && cells_[0].empty());
  return true;
}

Status CsvReader::row() {
  cells_.clear();
  unquoted_.clear();
  row_line_ = line_;
  for (bool more = true; more;) {
    if (form_.quotes && rest_.starts_with('"'))
      HEADRACE_TRY(quoted());
    else
      plain();
    more = rest_.starts_with(form_.separator);
    if (more) rest_.remove_prefix(1);
  }
  if (rest_.starts_with('\r')) rest_.remove_prefix(1);
  if (!rest_.empty() && rest_[0] != '\n')
    return corrupt("text after a closing quote").with(fmt::format("line {}", line_));
  if (!rest_.empty()) rest_.remove_prefix(1);
  ++line_;
  return {};
}

void CsvReader::plain() {
  size_t end = 0;
  while (end < rest_.size() && rest_[end] != form_.separator && rest_[end] != '\n') ++end;
  std::string_view cell = rest_.substr(0, end);
  rest_.remove_prefix(end);
  if (cell.ends_with('\r') && (rest_.empty() || rest_[0] == '\n')) cell.remove_suffix(1);
  cells_.push_back(cell);
}

Status CsvReader::quoted() {
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

namespace {

// What pandas reads as a missing value; that a column is of numbers is for the columns to say.
constexpr std::array<std::string_view, 14> kMissing = {
    "NA",   "N/A", "n/a",  "<NA>", "NULL",    "null",    "None",
    "#N/A", "#NA", "-NaN", "-nan", "1.#QNAN", "-1.#IND", "#N/A N/A"};

Cell::Word word_of(std::string_view text) {
  if (text == "True" || text == "TRUE" || text == "true") return Cell::Word::kTrue;
  if (text == "False" || text == "FALSE" || text == "false") return Cell::Word::kFalse;
  return std::find(kMissing.begin(), kMissing.end(), text) != kMissing.end() ? Cell::Word::kMissing
                                                                             : Cell::Word::kNone;
}

// pandas writes its index as a first column without a name; it calls others "Unnamed: 2".
void name_unnamed(std::vector<std::string>& names) {
  const auto taken = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (size_t i = 0; names.size() > 1 && i < names.size(); ++i)
    if (names[i].empty())
      names[i] = i == 0 && !taken("index") ? "index" : fmt::format("Unnamed: {}", i);
}

Status check_names(const std::vector<std::string>& names) {
  if (names.size() > kMaxFields) return corrupt("too many columns");
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return corrupt(fmt::format("line 1: column {} has no name", i + 1));
    const auto here = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names.begin(), here, names[i]) != here)
      return corrupt(
          fmt::format("line 1: two columns are named '{}'; rename one of them", names[i]));
  }
  return {};
}

// The cell as it is written; as a number without the blanks around it.
Cell table_cell(std::string_view column, std::string_view text) {
  Cell cell = make_cell(column, trimmed(text));
  cell.text = text;
  if (cell.type == Cell::Type::kText) cell.word = word_of(trimmed(text));
  return cell;
}

// One file on its way to rows.  One thread at a time.
class CsvRows {
 public:
  CsvRows(std::string_view text, const CsvForm& form, const ListInput& input,
          const RowFunction& row)
      : reader_(text, form), form_(form), input_(input), row_(row) {}

  Status run() {
    HEADRACE_ASSIGN(bool more, reader_.next());
    if (!more) return corrupt("no header line");
    names_ = form_.names;
    if (form_.has_header) {
      names_.assign(reader_.cells().begin(), reader_.cells().end());
      name_unnamed(names_);
      HEADRACE_ASSIGN(more, reader_.next());
    } else if (names_.empty()) {
      for (size_t i = 0; i < reader_.cells().size(); ++i) names_.push_back(fmt::format("{}", i));
    }
    HEADRACE_TRY(check_names(names_));
    views_.assign(names_.begin(), names_.end());
    if (more) choose_path();
    while (more) {
      HEADRACE_TRY(take());
      HEADRACE_ASSIGN(more, reader_.next());
    }
    return {};
  }

 private:
  // Which column names files, if one does.
  void choose_path() {
    path_ = path_column(views_, reader_.cells(), input_);
    // A list without a header: what a text list would call them.
    if (path_ && !form_.has_header && form_.names.empty()) {
      names_[*path_] = "path";
      if (names_.size() == 2) names_[1 - *path_] = "cls";
      views_.assign(names_.begin(), names_.end());
    }
  }

  Status take() {
    const std::vector<std::string_view>& texts = reader_.cells();
    if (texts.size() != names_.size())
      return corrupt(fmt::format(
          "line {}: {} cells, {} {}; mend the line, and quote cells that hold a '{}'",
          reader_.line(), texts.size(), form_.has_header ? "the header has" : "others have",
          names_.size(), form_.separator));
    cells_.clear();
    for (size_t i = 0; i < texts.size(); ++i)
      if (path_ != i && !texts[i].empty()) cells_.push_back(table_cell(views_[i], texts[i]));
    if (!path_) return row_({reader_.line(), {}, cells_, true, views_});
    return row_({reader_.line(), texts[*path_], cells_});
  }

  CsvReader reader_;
  const CsvForm& form_;
  const ListInput& input_;
  const RowFunction& row_;
  std::vector<std::string> names_;
  std::vector<std::string_view> views_;
  std::vector<Cell> cells_;
  std::optional<size_t> path_;
};

}  // namespace

// White space around numbers is no text.
std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

Status read_csv(Bytes list, char usual, const ListInput& input, const RowFunction& row) {
  HEADRACE_ASSIGN(const CsvForm form, guess_csv(as_text(list), usual, input));
  if (!form.notice.empty() && input.notices != nullptr) *input.notices = {form.notice};
  return CsvRows(as_text(list), form, input, row).run();
}

}  // namespace headrace
