// SPDX-License-Identifier: Apache-2.0
//
// Which separator a text has, and whether its first line is a header.
//
//   separator   one of , ; tab | that cuts all of the first rows into equally many cells
//   header      yes: above a column of numbers stands a text;  no: there stands a number, or the
//               first line comes again in its column;  neither: yes, if its cells can be names

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "format/files/csv.h"
#include "format/files/lists.h"

namespace headrace {
namespace {

constexpr size_t kRowsLookedAt = 200;
constexpr size_t kLongestName = 64;
constexpr char kSeparators[] = {',', ';', '\t', '|'};

using Rows = std::vector<std::vector<std::string>>;

// The first rows; an error where the text is none of this form.
Result<Rows> first_rows(std::string_view text, const CsvForm& form) {
  CsvReader reader(text, form);
  Rows rows;
  while (rows.size() < kRowsLookedAt) {
    HEADRACE_ASSIGN(const bool more, reader.next());
    if (!more) break;
    rows.emplace_back(reader.cells().begin(), reader.cells().end());
  }
  return rows;
}

// Equally many cells in all rows, and more than one.
bool is_table(const Rows& rows) {
  return !rows.empty() && rows[0].size() > 1 &&
         std::all_of(rows.begin(), rows.end(),
                     [&rows](const auto& row) { return row.size() == rows[0].size(); });
}

// As it would be read: the first row, for a message.
std::string shown(const Rows& rows) {
  std::string out;
  for (const std::string& cell : rows[0])
    out += fmt::format("{}'{}'", out.empty() ? "" : ", ", cell.substr(0, 24));
  return out;
}

bool is_number(std::string_view text) {
  return make_cell("", trimmed(text)).type != Cell::Type::kText;
}

struct Guess {
  CsvForm form;
  Rows rows;
};

// With quotes where that goes.  Texts with tabs are often written without: where quotes do not
// close, they are letters.
Result<Guess> look(std::string_view text, char separator) {
  Guess out{.form = {.separator = separator}, .rows = {}};
  Result<Rows> rows = first_rows(text, out.form);
  if (!rows.ok() || !is_table(rows.value())) {
    CsvForm plain = out.form;
    plain.quotes = false;
    const Result<Rows> unquoted = first_rows(text, plain);
    if (unquoted.ok() && is_table(unquoted.value()) && !rows.ok() && separator == '\t') {
      out.form = plain;
      out.rows = unquoted.value();
      return out;
    }
  }
  if (!rows.ok()) return rows.status();
  out.rows = std::move(rows.value());
  return out;
}

Result<Guess> find_separator(std::string_view text, char usual, const ListReading& reading) {
  if (reading.separator) return look(text, *reading.separator);
  std::vector<Guess> found;
  for (const char separator : kSeparators) {
    const Result<Guess> guess = look(text, separator);
    if (guess.ok() && is_table(guess.value().rows)) found.push_back(guess.value());
  }
  if (found.empty()) return look(text, usual);
  if (found.size() == 1) return found[0];
  return invalid(fmt::format(
      "the separator can be read in two ways: by '{}' line 1 is {}; by '{}' it is {}; say "
      "separator='{}' or separator='{}'",
      separator_text(found[0].form.separator), shown(found[0].rows),
      separator_text(found[1].form.separator), shown(found[1].rows),
      separator_text(found[0].form.separator), separator_text(found[1].form.separator)));
}

// What the columns say of the first line.
struct Evidence {
  bool for_header = false;
  bool against = false;
};

Evidence evidence(const Rows& rows) {
  Evidence out;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    const std::string& first = rows[0][c];
    bool numbers = false;
    bool texts = false;
    bool again = false;
    for (size_t r = 1; r < rows.size(); ++r) {
      if (c >= rows[r].size() || rows[r][c].empty()) continue;
      (is_number(rows[r][c]) ? numbers : texts) = true;
      again |= rows[r][c] == first;
    }
    if (numbers && !texts && !first.empty())
      (is_number(first) ? out.against : out.for_header) = true;
    // A number among texts may come again by chance; a text does not where it is a name.
    if (again && !first.empty() && texts) out.against = true;
  }
  return out;
}

bool can_be_names(const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].empty() && i > 0) return false;  // pandas leaves the first away
    if (cells[i].size() > kLongestName || is_number(cells[i]) || looks_like_file(cells[i]) ||
        cells[i].find('\n') != std::string::npos)
      return false;
    if (std::count(cells.begin(), cells.end(), cells[i]) > 1) return false;
  }
  return true;
}

Status two_headers(const Rows& rows) {
  return invalid(
      fmt::format("line 1 ({}) may be the names of the columns or the first row: say header=True, "
                  "header=False, or header=['a', 'b', …] to name them",
                  shown(rows)));
}

Status find_header(const ListReading& reading, Guess& guess) {
  guess.form.names = reading.names;
  if (reading.header) {
    guess.form.has_header = *reading.header;
    return {};
  }
  if (guess.rows.empty()) return {};
  const Evidence says = evidence(guess.rows);
  const bool names = can_be_names(guess.rows[0]);
  if (says.against && says.for_header) return two_headers(guess.rows);
  if (!says.against && !says.for_header && !names) {
    // A single column, or cells that are all texts: a list of files has no header.
    const bool files = std::any_of(guess.rows[0].begin(), guess.rows[0].end(),
                                   [](const std::string& cell) { return looks_like_file(cell); });
    if (!files || guess.rows.size() < 2) return two_headers(guess.rows);
  }
  guess.form.has_header = !says.against && (says.for_header || names);
  if (!guess.form.has_header)
    guess.form.notice = fmt::format(
        "line 1 is taken for the first row, not for names of columns ({}): say header=True if it "
        "is, or header=['a', 'b', …] to name them",
        shown(guess.rows));
  return {};
}

}  // namespace

Result<CsvForm> guess_csv(std::string_view text, char usual, const ListInput& input) {
  if (trimmed(text).empty()) return corrupt("no header line");
  HEADRACE_ASSIGN(Guess guess, find_separator(text, usual, input.reading));
  HEADRACE_TRY(find_header(input.reading, guess));
  return guess.form;
}

}  // namespace headrace
