// SPDX-License-Identifier: Apache-2.0
#include "format/files/lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/hash.h"
#include "base/utf8.h"
#include "format/files/csv.h"
#include "format/files/folders.h"
#include "format/files/grouping.h"
#include "format/files/packed.h"
#include "format/records.h"
#include "index/names.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::array<std::string_view, 8> kPathNames = {
    "path", "file", "filename", "image", "file_name", "filepath", "file_path", "image_path"};
constexpr size_t kUnpackStep = size_t{1} << 20;
constexpr size_t kLongestPath = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_pickle(Bytes head) {
  // PROTO and its number; protocols 0 and 1 have no such mark and go by their suffix.
  return head.size() >= 2 && head[0] == std::byte{0x80} && head[1] >= std::byte{2} &&
         head[1] <= std::byte{5};
}

bool is_json_object(Bytes head) {
  const std::string_view text = as_text(head);
  const size_t first = text.find_first_not_of(kSpace);
  return first != std::string_view::npos && text[first] == '{';
}

Status read_rows(Bytes list, std::string_view path, const ListInput& input,
                 const RowFunction& row) {
  std::string name = lower_case(path);
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  if (as_text(list).starts_with(kByteOrderMark)) list = list.subspan(kByteOrderMark.size());
  if (is_pickle(list) || name.ends_with(".pkl") || name.ends_with(".pickle"))
    return read_pickle(list, row);
  if (name.ends_with(".csv")) return read_csv(list, ',', input, row);
  if (name.ends_with(".tsv")) return read_csv(list, '\t', input, row);
  if (is_json_object(list) || name.ends_with(".jsonl") || name.ends_with(".ndjson"))
    return read_jsonl(list, input, row);
  if (input.reading.separator || input.reading.header || input.reading.table.value_or(false))
    return read_csv(list, input.reading.separator.value_or('\t'), input, row);
  return read_text_list(list, row);
}

Kind kind_of(Cell::Type type) {
  static constexpr std::array kKinds = {Kind::kInt, Kind::kFloat, Kind::kText, Kind::kJson};
  return kKinds[static_cast<size_t>(type)];
}

// All that a stream opens to, in memory that grows as data come: what it claims may be anything.
Result<Buffer> unpack_all(Inflater& inflater, Bytes packed) {
  std::vector<std::byte> out;
  for (;;) {
    const size_t before = out.size();
    out.resize(before + kUnpackStep);
    MutableBytes room = MutableBytes(out).subspan(before);
    HEADRACE_TRY(inflater.step(packed, room));
    out.resize(out.size() - room.size());
    if (out.size() == before && packed.empty()) break;
  }
  if (!inflater.at_end()) return corrupt("the packed file is cut short: its stream has no end");
  Buffer all(out.size());
  std::copy(out.begin(), out.end(), all.data());
  return all;
}

// The columns that the rows have, and what they hold.  One thread at a time.
class Columns {
 public:
  Status see(const Cell& cell, size_t position) {
    Column& column = columns_[number(cell.column, position)];
    if (cell.word == Cell::Word::kMissing) {
      if (column.missing++ == 0) column.first_missing = cell.text;
      return {};
    }
    if (cell.word != Cell::Word::kNone) {
      column.has_truth = true;
      return {};
    }
    column.is_seen = true;
    column.type = std::max(column.type, cell.type);
    column.has_text |= cell.type == Cell::Type::kText;
    if (column.has_text && column.type == Cell::Type::kJson)
      return corrupt(fmt::format("'{}' is text in one line and JSON in another", column.name));
    return {};
  }
  // The number of a column that was seen or is new; rows mostly have theirs in one order.
  size_t number(std::string_view name, size_t position) {
    if (position < columns_.size() && columns_[position].name == name) return position;
    const auto known = std::find_if(columns_.begin(), columns_.end(),
                                    [name](const Column& column) { return column.name == name; });
    if (known != columns_.end()) return static_cast<size_t>(known - columns_.begin());
    columns_.push_back({std::string(name)});
    return columns_.size() - 1;
  }
  size_t size() const { return columns_.size(); }
  // Once, after the last cell was seen: what the words are.
  void settle(std::vector<std::string>& notices) {
    for (Column& column : columns_) {
      const bool is_number = column.is_seen && column.type < Cell::Type::kText;
      column.is_truth = column.has_truth && !column.is_seen;
      column.lacks = column.missing > 0 && (column.is_truth || (is_number && !column.has_truth));
      // Words beside texts, or beside numbers that they cannot be, are texts.
      if (!column.is_truth && (column.has_truth || (column.missing > 0 && !column.lacks)))
        column.type = std::max(column.type, Cell::Type::kText);
      if (column.lacks)
        notices.push_back(fmt::format(
            "column '{}': {} cells among the numbers are words for a missing value, the first "
            "'{}': these samples lack the field",
            column.name, column.missing, column.first_missing));
    }
  }
  void make_fields(PartBuilder& part) {
    for (Column& column : columns_)
      column.field = part.field(column.name, kind_of(column.type), Storage::kInline);
  }
  void add(const Cell& cell, size_t position, PartBuilder& part) {
    const Column& column = columns_[number(cell.column, position)];
    if (column.lacks && cell.word == Cell::Word::kMissing) return;
    if (column.is_truth)
      part.add_int(column.field, cell.word == Cell::Word::kTrue ? 1 : 0);
    else if (column.type == Cell::Type::kInt)
      part.add_int(column.field, cell.integer);
    else if (column.type == Cell::Type::kFloat)
      part.add_float(column.field, cell.number);
    else
      part.add_bytes(column.field, as_bytes(as_written(cell)));
  }

 private:
  struct Column {
    std::string name;
    Cell::Type type = Cell::Type::kInt;
    bool has_text = false;
    bool is_seen = false;    // a cell that is no such word
    bool has_truth = false;  // True or False
    bool is_truth = false;   // nothing but those
    bool lacks = false;      // words for a missing value are none
    uint64_t missing = 0;
    std::string first_missing;
    uint32_t field = 0;
  };
  // A pickled number among texts was never written as one.
  static std::string as_written(const Cell& cell) {
    if (!cell.text.empty() || cell.type >= Cell::Type::kText) return std::string(cell.text);
    return cell.type == Cell::Type::kInt ? fmt::format("{}", cell.integer)
                                         : fmt::format("{}", cell.number);
  }
  std::vector<Column> columns_;
};

// The files that a list names: which pictures share their stem with another one.  One thread at
// a time.
class ListedFiles {
 public:
  void see(std::string_view path) {
    const bool is_picture = is_picture_path(path);
    (is_picture ? pictures_ : others_) = true;
    if (is_picture) seen_.push_back({hash(split_stem(path).key), hash(path)});
  }
  // Once, after the last.
  void finish() {
    std::sort(seen_.begin(), seen_.end());
    for (size_t i = 1; i < seen_.size(); ++i)
      if (seen_[i].first == seen_[i - 1].first && seen_[i].second != seen_[i - 1].second &&
          (twins_.empty() || twins_.back() != seen_[i].first))
        twins_.push_back(seen_[i].first);
    seen_ = {};
  }
  bool is_mixed() const { return pictures_ && others_; }
  bool has_twins() const { return !twins_.empty(); }
  std::string_view key(std::string_view path) const {
    const std::string_view stem = split_stem(path).key;
    const bool is_twin = !twins_.empty() && is_picture_path(path) &&
                         std::binary_search(twins_.begin(), twins_.end(), hash(stem));
    return is_twin ? path : stem;
  }

 private:
  static uint64_t hash(std::string_view text) { return Hasher().add(text).finish().low; }
  std::vector<std::pair<uint64_t, uint64_t>> seen_;  // stem, path
  std::vector<uint64_t> twins_;                      // stems, sorted
  bool pictures_ = false;
  bool others_ = false;
};

Status at_line(const Status& status, uint64_t line) {
  return status.with(fmt::format("line {}", line));
}

// Digits that are no int64.
bool is_too_large(const Cell& cell) {
  return cell.type == Cell::Type::kText &&
         cell.text.find_first_not_of("0123456789", cell.text.starts_with('-') ? 1 : 0) ==
             std::string_view::npos &&
         cell.text != "-";
}

Status check_row(const ListRow& row, const ShardInput& shard) {
  if (shard.cancelled()) return cancelled("indexing was cancelled");
  if (row.path.empty() && !row.is_table) return at_line(corrupt("no path"), row.line);
  if (row.path.find('\0') != std::string_view::npos)
    return at_line(corrupt("a NUL in the path"), row.line);
  return {};
}

// A file without an extension is a value all the same: the list says so.
uint32_t file_field(std::string_view path, PartBuilder& part) {
  const std::string_view extension = split_stem(path).extension;
  return part.field(extension.empty() ? "file" : normal_extension(extension));
}

void add_row(const ListRow& row, Columns& columns, const ListedFiles& files, PartBuilder& part) {
  part.add_whole_file(file_field(row.path, part), part.add_file(row.path));
  for (size_t i = 0; i < row.cells.size(); ++i) columns.add(row.cells[i], i, part);
  part.end_sample(files.key(row.path));
}

// Which column of the table a cell is; cells come in the order of the columns, `from` the last
// one's.
size_t table_position(const ListRow& row, const Cell& cell, size_t from) {
  while (from < row.table.size() && row.table[from].data() != cell.column.data()) ++from;
  return from;
}

// Columns are numbered as the header names them, also those without a value; keys are numbers.
void add_table_row(const ListRow& row, Columns& columns, NumberedKeys& keys, PartBuilder& part) {
  size_t at = 0;
  for (const Cell& cell : row.cells) {
    at = table_position(row, cell, at);
    columns.add(cell, at, part);
  }
  part.end_sample(keys.at(part.samples()));
}

// A list of paths alone that names pictures and other files: those of one stem are one sample.
Status add_grouped(const ShardInput& shard, Bytes list, const ListInput& input, PartHead head,
                   Result<PartPointer>& out) {
  std::vector<std::string> paths;
  HEADRACE_TRY(read_rows(list, shard.info.path, input, [&paths](const ListRow& row) {
    paths.emplace_back(row.path);
    return Status();
  }));
  const FileGroups groups =
      group_files(std::vector<std::string_view>(paths.begin(), paths.end()), true);
  head.own_keys = groups.has_twins;
  PartBuilder part(std::move(head));
  for (size_t s = 0; s < groups.size(); ++s) {
    for (const uint32_t file : groups.of(s))
      part.add_whole_file(file_field(paths[file], part), part.add_file(paths[file]));
    const std::string& lead = paths[groups.of(s)[0]];
    part.end_sample(groups.keeps_extension[s] ? lead : split_stem(lead).key);
  }
  if (!groups.left_out.empty())
    part.head().notices.push_back(
        fmt::format("{} files are neither pictures nor named like one, and are left out: the first "
                    "is '{}'",
                    groups.left_out.size(), paths[groups.left_out[0]]));
  out = part.finish();
  return {};
}

Status add_rows(const ShardInput& shard, Bytes list, const ListInput& input, Columns& columns,
                const ListedFiles& files, PartHead head, Result<PartPointer>& out) {
  const bool is_table = !head.has_files;
  PartBuilder part(std::move(head));
  columns.make_fields(part);
  NumberedKeys keys(shard.info.path, kListSuffixes);
  HEADRACE_TRY(read_rows(list, shard.info.path, input, [&](const ListRow& row) {
    if (is_table)
      add_table_row(row, columns, keys, part);
    else
      add_row(row, columns, files, part);
    return Status();
  }));
  out = part.finish();
  return {};
}

// The bytes of a list, unpacked where its name says that it is packed.
Result<Buffer> read_list(const ShardInput& shard) {
  HEADRACE_ASSIGN(Buffer stored, shard.store.read_all(shard.info.path));
  HEADRACE_ASSIGN(const std::unique_ptr<Inflater> inflater, inflater_of(shard.info.path));
  if (inflater == nullptr) return stored;
  return unpack_all(*inflater, stored.bytes());
}

// What is no text in UTF-8 would be read as something else, or end a run at its first such cell.
Status check_encoding(Bytes list, std::string_view path, bool is_table) {
  using namespace std::string_view_literals;
  const std::string_view text = as_text(list);
  const auto converted = [path](std::string_view from) {
    return fmt::format("convert it: iconv -f {} -t UTF-8 '{}' > utf8.csv", from, path);
  };
  if (text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv))
    return corrupt(fmt::format("the text is UTF-16, not UTF-8; {}", converted("UTF-16")));
  if (!is_table) return {};
  if (text.find('\r') < text.size() && text.find('\n') == std::string_view::npos)
    return corrupt(
        fmt::format("its lines end with CR alone, as on old Macs; convert it: tr '\\r' '\\n' < "
                    "'{}' > lines.csv",
                    path));
  const size_t bad = valid_utf8_prefix(list);
  if (bad == list.size()) return {};
  return corrupt(
      fmt::format("line {} is not UTF-8; {}",
                  1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n'),
                  converted("LATIN1")));
}

Status see_row(const ListRow& row, Columns& columns) {
  if (row.is_table && columns.size() == 0)
    for (const std::string_view name : row.table) columns.number(name, columns.size());
  size_t at = 0;
  for (size_t i = 0; i < row.cells.size(); ++i) {
    at = !row.is_table ? i : table_position(row, row.cells[i], at);
    if (Status s = columns.see(row.cells[i], at); !s.ok()) return at_line(s, row.line);
  }
  if (columns.size() > kMaxFields) return at_line(corrupt("too many columns"), row.line);
  return {};
}

}  // namespace

Cell make_cell(std::string_view column, std::string_view text) {
  Cell cell{.column = column, .type = Cell::Type::kText, .text = text};
  const char* end = text.data() + text.size();
  const auto integer = std::from_chars(text.data(), end, cell.integer);
  if (integer.ptr == end) {
    // Digits beyond 64 bits are a name, not a number that may be rounded.
    if (integer.ec != std::errc()) return cell;
    cell.type = Cell::Type::kInt;
    cell.number = static_cast<double>(cell.integer);
    return cell;
  }
  const auto number = std::from_chars(text.data(), end, cell.number);
  if (number.ptr == end && number.ec == std::errc()) cell.type = Cell::Type::kFloat;
  return cell;
}

bool looks_like_file(std::string_view text) {
  return make_cell("", trimmed(text)).type == Cell::Type::kText &&
         text.find('\n') == std::string_view::npos && !text.starts_with("http://") &&
         !text.starts_with("https://") &&
         (!split_stem(text).extension.empty() || text.find('/') != std::string_view::npos);
}

std::optional<size_t> path_column(std::span<const std::string_view> names,
                                  std::span<const std::string_view> cells, const ListInput& input) {
  if (input.reading.table.value_or(false)) return std::nullopt;
  const bool is_list = input.reading.table == false;  // the user says so, by root=
  for (const std::string_view wanted : kPathNames)
    for (size_t i = 0; i < names.size() && i < cells.size(); ++i)
      if (lower_case(names[i]) == wanted &&
          (is_list || cells[i].empty() || looks_like_file(cells[i]) || input.exists(cells[i])))
        return i;
  for (size_t i = 0; i < names.size() && i < cells.size(); ++i)
    if (looks_like_file(cells[i]) && input.exists(cells[i])) return i;
  return is_list ? std::optional<size_t>(0) : std::nullopt;
}

bool sniff_list(Bytes head) {
  return is_pickle(head) || is_json_object(head);
}

Result<PartPointer> index_list(const ShardInput& shard) {
  HEADRACE_ASSIGN(const ListReading reading, ListReading::parse(shard.info.part));
  Result<Buffer> unpacked = read_list(shard);
  if (!unpacked.ok()) return unpacked.status().in_file(shard.info.path);
  const Buffer list = std::move(unpacked.value());
  const std::string folder = shard.info.path.substr(0, shard.info.path.rfind('/') + 1);
  std::vector<std::string> notices;
  const ListInput input{.reading = reading,
                        .exists =
                            [&](std::string_view path) {
                              if (path.empty() || path.size() > kLongestPath) return false;
                              const std::string there(path);
                              return shard.store.stat(path[0] == '/' ? there : folder + there).ok();
                            },
                        .notices = &notices};
  Columns columns;
  ListedFiles files;
  bool is_table = false;
  uint64_t rows = 0;
  const std::string name = lower_case(shard.info.path);
  const bool is_csv = name.find(".csv") != name.npos || name.find(".tsv") != name.npos;
  Status status = check_encoding(list.bytes(), shard.info.path, is_csv);
  if (!status.ok()) return status.in_file(shard.info.path);
  status = read_rows(list.bytes(), shard.info.path, input, [&](const ListRow& row) {
    HEADRACE_TRY(check_row(row, shard));
    ++rows;
    is_table = row.is_table;
    if (!is_table) files.see(row.path);
    return see_row(row, columns);
  });
  if (!status.ok()) return status.in_file(shard.info.path);
  files.finish();
  columns.settle(notices);
  if (is_table && rows == 1 && (name.ends_with(".json") || name.ends_with(".json.gz")))
    notices.push_back(fmt::format(
        "the file is one JSON object, and so one sample; if a list in it holds the records, write "
        "them a record a line: jq -c '.NAME[]' '{}' > records.jsonl",
        shard.info.path));
  PartHead head{.format = "files",
                .shard_bytes = shard.info.bytes,
                .modified_ns = shard.info.modified_ns,
                .has_files = !is_table,
                .whole_files = !is_table,
                .own_keys = files.has_twins()};
  head.notices = notices;
  Result<PartPointer> made = internal("not made");
  if (!is_table && columns.size() == 0 && files.is_mixed())
    status = add_grouped(shard, list.bytes(), input, std::move(head), made);
  else
    status = add_rows(shard, list.bytes(), input, columns, files, std::move(head), made);
  if (!status.ok()) return status.in_file(shard.info.path);
  if (!made.ok()) return made.status().in_file(shard.info.path);
  return made;
}

// One path a line; an integer after white space is its label.  All lines have one or none has.
Status read_text_list(Bytes list, const RowFunction& row) {
  std::string_view rest = as_text(list);
  int labelled = -1;  // not known yet
  for (uint64_t line = 1; !rest.empty(); ++line) {
    std::string_view path = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(path.size() + 1, rest.size()));
    while (!path.empty() && kSpace.find(path.back()) != std::string_view::npos)
      path.remove_suffix(1);
    path.remove_prefix(std::min(path.find_first_not_of(kSpace), path.size()));
    if (path.empty()) continue;
    Cell label;
    const size_t gap = path.find_last_of(kSpace);
    if (gap != std::string_view::npos) label = make_cell("cls", path.substr(gap + 1));
    const bool has_label = gap != std::string_view::npos && label.type == Cell::Type::kInt;
    if (gap != std::string_view::npos && is_too_large(label))
      return at_line(corrupt("a label beyond 64 bits"), line);
    if (labelled >= 0 && has_label != (labelled == 1))
      return at_line(
          corrupt(has_label ? "a label, where the lines before have none"
                            : "no integer label at the end, where the lines before have one"),
          line);
    labelled = has_label ? 1 : 0;
    if (has_label) path = path.substr(0, path.find_last_not_of(kSpace, gap) + 1);
    HEADRACE_TRY(row({line, path, std::span(&label, has_label ? 1 : 0)}));
  }
  return {};
}

}  // namespace headrace
