// SPDX-License-Identifier: Apache-2.0
//
// Lists of files: a path and some values a row; or, of CSV and JSON lines, a table: values alone.
// Each reader goes over the rows of the list's bytes; index_list() goes over them twice, first for
// the kinds of the columns, then for the part.  Every problem names the line.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "format/files/reading.h"
#include "format/format.h"

namespace headrace {

struct Cell {
  // In order of generality: a column's kind is the highest that it holds.
  enum class Type : uint8_t { kInt, kFloat, kText, kJson };
  // Words of a CSV file that mean something else where the whole column allows it: "NA" among
  // numbers, and a column of nothing but "True" and "False".
  enum class Word : uint8_t { kNone, kMissing, kFalse, kTrue };
  std::string_view column;
  Type type = Type::kInt;
  Word word = Word::kNone;
  int64_t integer = 0;    // kInt
  double number = 0;      // kInt, kFloat
  std::string_view text;  // as it was written; of a pickled number: empty
};

struct ListRow {
  uint64_t line = 0;  // from 1; of a pickle: the number of the entry
  std::string_view path;
  std::span<const Cell> cells;  // those that are there; a column may come several times
  bool is_table = false;        // it names no file: the path is empty
  // Of a table: its columns, also those without a value in this row.
  std::span<const std::string_view> table = {};
};

// Views are valid during the call.
using RowFunction = std::function<Status(const ListRow&)>;

// What a reader knows beside the bytes.
struct ListInput {
  ListReading reading = {};
  std::function<bool(std::string_view path)> exists = {};  // a file that the list may name
  std::vector<std::string>* notices = nullptr;
};

Status read_text_list(Bytes list, const RowFunction& row);
Status read_csv(Bytes list, char usual, const ListInput& input, const RowFunction& row);
Status read_jsonl(Bytes list, const ListInput& input, const RowFunction& row);
Status read_pickle(Bytes list, const RowFunction& row);

// The column that names files, by its name (path, file, filename, image, …) or else because the
// first row's is there; nothing where the rows are a table.  `cells` are those of the first row.
std::optional<size_t> path_column(std::span<const std::string_view> names,
                                  std::span<const std::string_view> cells, const ListInput& input);
// A text with an extension or a slash, and no number.
bool looks_like_file(std::string_view text);

// Int, float or text, by what `text` looks like.
Cell make_cell(std::string_view column, std::string_view text);

Result<PartPointer> index_list(const ShardInput& shard);
bool sniff_list(Bytes head);

inline constexpr std::string_view kListSuffixes[] = {
    ".txt",      ".list",      ".csv",       ".tsv",        ".jsonl",   ".ndjson",
    ".pkl",      ".pickle",    ".csv.gz",    ".csv.zst",    ".tsv.gz",  ".tsv.zst",
    ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst", ".json.gz", ".json.zst",
};

}  // namespace headrace
