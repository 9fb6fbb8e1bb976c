// SPDX-License-Identifier: Apache-2.0
//
// Rows of a text of separated values, and what form such a text has.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace headrace {

struct ListInput;

struct CsvForm {
  char separator = ',';
  bool quotes = true;  // cells may be quoted; else a quote is a letter as any other
  bool has_header = true;
  std::vector<std::string> names = {};  // of the columns, where the user gave them
  std::string notice = {};              // what a user should hear of the choice
};

// Takes rows off a text.  One thread at a time.
class CsvReader {
 public:
  CsvReader(std::string_view text, const CsvForm& form) : rest_(text), form_(form) {}

  uint64_t line() const { return row_line_; }
  const std::vector<std::string_view>& cells() const { return cells_; }
  // Blank lines are skipped.  False at the end.
  Result<bool> next();

 private:
  Status row();
  void plain();
  Status quoted();

  std::string_view rest_;
  const CsvForm form_;
  uint64_t line_ = 1;
  uint64_t row_line_ = 1;
  std::vector<std::string_view> cells_;
  std::deque<std::string> unquoted_;  // what cells_ views of quoted cells point into
};

// The form of a text, by its first rows and by what the user said.  `usual` is the separator that
// the name of the file stands for.  What may be read in two ways is kInvalidArgument: the text
// shows both, and what to say.
Result<CsvForm> guess_csv(std::string_view text, char usual, const ListInput& input);

std::string_view trimmed(std::string_view text);

}  // namespace headrace
