// SPDX-License-Identifier: Apache-2.0
//
// Parquet: columns in row groups, described by a footer.
//
//   +------+-----------------------+-----------------------+- - -+--------+---------+------+
//   | PAR1 | row group 0           | row group 1           |     | footer | u32 its | PAR1 |
//   |      | column 0 | column 1 … | column 0 | column 1 … |     |        | length  |      |
//   +------+-----------------------+-----------------------+- - -+--------+---------+------+
//
// A row is a sample.  A column of a row group (a chunk) is a unit that opens as a whole, as a table
// of its rows, so that columns that nobody wants are not read.  Numbers and keys are read when the
// file is indexed, and lie in the index.  What becomes of types: parquet_types.h.  The bytes are
// decoded by a ParquetLibrary, which reads the file itself: a unit has no stored bytes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "format/format.h"
#include "format/parquet/footer.h"
#include "format/parquet/library.h"
#include "format/parquet/rows.h"
#include "format/parquet/types.h"
#include "format/records.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".parquet", ".pq"};
constexpr uint64_t kLookRows = 8;  // rows of a column that may hold pictures
// Shuffling holds several row groups at a time.
constexpr uint64_t kLargeGroup = uint64_t{256} << 20;

// Calls f(schema, column) for each batch of a leaf; a batch is a struct of one column.
template <typename F>
Status each_batch(const Store& store, const std::string& path, uint64_t offset, uint32_t leaf,
                  uint64_t rows, F&& f) {
  HEADRACE_ASSIGN(const ParquetLibrary* library, parquet_library());
  ArrowOwned<ArrowArrayStream> stream;
  HEADRACE_TRY(library->read(store, path, offset, leaf, rows, stream.fill()));
  const auto failed = [&stream](std::string_view doing) {
    const char* why = stream->get_last_error(&*stream);
    return corrupt(fmt::format("{}: {}", doing, why == nullptr ? "unknown error" : why));
  };
  ArrowOwned<ArrowSchema> schema;
  if (stream->get_schema(&*stream, schema.fill()) != 0) return failed("the column's type");
  if (schema->n_children != 1) return internal("one column is wanted");
  while (true) {
    ArrowOwned<ArrowArray> batch;
    if (stream->get_next(&*stream, batch.fill()) != 0) return failed("the column");
    if (!batch) return {};
    if (batch->n_children != 1) return internal("one column is wanted");
    if (batch->offset != 0) return internal("a batch that begins within its column");
    HEADRACE_TRY(f(*schema->children[0], *batch->children[0]));
  }
}

Status open_column(const Store& store, const std::string& path, uint64_t offset, uint32_t leaf,
                   uint64_t rows, Buffer& out) {
  RowTableBuilder table;
  HEADRACE_TRY(each_batch(store, path, offset, leaf, rows,
                          [&table](const ArrowSchema& schema, const ArrowArray& column) {
                            return add_rows(schema, column, table);
                          }));
  table.finish(out);
  return {};
}

// What an opened unit takes: the values, and where each of them lies.
uint64_t opened_bytes(const ParquetGroup& group, const ParquetChunk& chunk) {
  return chunk.decoded + 16 * group.rows;
}

// One thread at a time.
class ParquetIndexer {
 public:
  // Names of columns that turn out to hold what no field can are added to `unfit`, with the
  // reason, and the part is then worth nothing.
  ParquetIndexer(const ShardInput& shard, std::vector<std::pair<std::string, std::string>>& unfit)
      : shard_(shard),
        unfit_(unfit),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "parquet",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = true}) {}

  Result<PartPointer> run() {
    HEADRACE_TRY(check_magic());
    HEADRACE_TRY(check_footer());
    HEADRACE_ASSIGN(const ParquetLibrary* library, parquet_library());
    HEADRACE_ASSIGN(layout_, library->layout(shard_.store, shard_.info.path));
    HEADRACE_TRY(find_columns());
    for (uint32_t g = 0; g < layout_.groups.size(); ++g) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      if (Status s = add_group(layout_.groups[g]); !s.ok())
        return s.with(fmt::format("row group {}", g));
      if (unfit_.size() != known_unfit_) return PartPointer();
    }
    notice_large_groups();
    return part_.finish();
  }

 private:
  struct Column {
    ParquetLeaf leaf;
    uint32_t field = 0;
    ParquetNumbers numbers = {};  // of the row group at hand, where they lie in the index
  };

  Status check_magic() const {
    Buffer head;
    if (shard_.info.bytes < 12)
      return corrupt(fmt::format("no Parquet file: {} bytes", shard_.info.bytes)).at(0);
    HEADRACE_TRY(shard_.store.read_at(shard_.info.path, 0, 4, head));
    if (as_text(head.bytes()) == "PARE")
      return unsupported(
          "an encrypted Parquet file, for which headrace takes no keys: decrypt it first");
    if (as_text(head.bytes()) != "PAR1")
      return corrupt("no Parquet file: it does not begin with PAR1").at(0);
    const uint64_t end = shard_.info.bytes - 4;
    HEADRACE_TRY(shard_.store.read_at(shard_.info.path, end, 4, head));
    if (as_text(head.bytes()) != "PAR1")
      return corrupt("the file does not end with its footer: it is cut short, or not finished")
          .at(end);
    return {};
  }

  // Before the library is let at it, which throws where columns are encrypted.
  Status check_footer() const {
    constexpr uint64_t kTail = 8;  // the length and the magic
    Buffer buffer;
    const uint64_t tail = shard_.info.bytes - kTail;
    HEADRACE_TRY(shard_.store.read_at(shard_.info.path, tail, 4, buffer));
    const uint64_t length = load_le<uint32_t>(buffer.bytes());
    if (length > tail - 4)
      return corrupt(fmt::format("a footer of {} bytes in a file of {}", length, shard_.info.bytes))
          .at(tail);
    HEADRACE_TRY(shard_.store.read_at(shard_.info.path, tail - length, length, buffer));
    HEADRACE_ASSIGN(const ParquetFooter footer,
                    parse_parquet_footer(buffer.bytes(), tail - length, shard_.info.bytes));
    if (footer.encrypted.empty()) return {};
    return unsupported(fmt::format(
        "columns are encrypted ('{}'), and headrace takes no keys: write the file again without "
        "encryption, or without these columns",
        fmt::join(footer.encrypted, "', '")));
  }

  Status find_columns() {
    HEADRACE_ASSIGN(ParquetLeaves leaves, arrow_leaves(*layout_.schema));
    for (const ParquetGroup& group : layout_.groups)
      if (group.chunks.size() != leaves.leaves)
        return corrupt(fmt::format("{} columns in a row group, {} in the schema",
                                   group.chunks.size(), leaves.leaves));
    part_.head().notices = std::move(leaves.notices);
    for (ParquetLeaf& leaf : leaves.fields) {
      if (is_unfit(leaf.field.name)) continue;
      if (leaf.is_key) {
        key_ = leaf.leaf;
        continue;
      }
      if (leaf.by_inspection) HEADRACE_TRY(inspect(leaf));
      columns_.push_back({std::move(leaf)});
      columns_.back().field = part_.field(columns_.back().leaf.field);
    }
    if (columns_.empty() && !key_)
      return unsupported(fmt::format("no column that a field can hold: {}",
                                     fmt::join(part_.head().notices, "; ")));
    return {};
  }

  bool is_unfit(std::string_view name) {
    for (const auto& [unfit, why] : unfit_) {
      if (unfit != name) continue;
      part_.head().notices.push_back(fmt::format("column '{}' holds {}: left out", name, why));
      ++known_unfit_;
      return true;
    }
    return false;
  }

  // Bytes without a kind: the first of them tell, or else the names they had as files.
  Status inspect(ParquetLeaf& leaf) {
    HEADRACE_ASSIGN(const std::string value, first_value(leaf.leaf));
    leaf.field.kind = kind_of_magic(value);
    if (leaf.field.kind != Kind::kBytes || !leaf.names) return {};
    HEADRACE_ASSIGN(const std::string name, first_value(*leaf.names));
    const Kind kind = kind_of_extension(name);
    if (kind == Kind::kJpeg || kind == Kind::kPng || kind == Kind::kWebp) leaf.field.kind = kind;
    return {};
  }

  Result<std::string> first_value(uint32_t leaf) const {
    for (const ParquetGroup& group : layout_.groups) {
      if (group.rows == 0) continue;
      Buffer unit;
      HEADRACE_TRY(open_column(shard_.store, shard_.info.path, group.chunks[leaf].offset, leaf,
                               kLookRows, unit));
      HEADRACE_ASSIGN(const RowTable table, RowTable::open(unit.bytes()));
      for (uint64_t row = 0; row < table.rows(); ++row) {
        if (table.values(row) == 0) continue;
        HEADRACE_ASSIGN(const Bytes value, table.value(row, 0));
        return std::string(as_text(value));
      }
      break;  // the first rows are null: a look at more would read the column
    }
    return std::string();
  }

  Status add_group(const ParquetGroup& group) {
    if (group.rows == 0) return {};
    Buffer keys;
    if (key_)
      HEADRACE_TRY(
          open_column(shard_.store, shard_.info.path, group.chunks[*key_].offset, *key_, 0, keys));
    for (Column& column : columns_)
      if (column.leaf.field.storage == Storage::kInline) HEADRACE_TRY(read_numbers(group, column));
    RowTable key_table;
    if (key_) {
      HEADRACE_ASSIGN(key_table, RowTable::open(keys.bytes()));
    }
    uint64_t bytes = 0;
    for (const ParquetChunk& chunk : group.chunks) bytes += chunk.decoded;
    part_.begin_shared(group.rows, bytes);
    for (uint64_t row = 0; row < group.rows; ++row) {
      for (const Column& column : columns_) add_value(group, column, row);
      if (key_ && key_table.values(row) == 1) {
        HEADRACE_ASSIGN(const Bytes key, key_table.value(row, 0));
        part_.end_sample(as_text(key));
      } else {
        part_.end_sample(keys_.at(part_.samples()));
      }
    }
    return {};
  }

  Status read_numbers(const ParquetGroup& group, Column& column) {
    column.numbers = {};
    const std::string& name = column.leaf.field.name;
    const uint64_t offset = group.chunks[column.leaf.leaf].offset;
    Status s = each_batch(shard_.store, shard_.info.path, offset, column.leaf.leaf, 0,
                          [&column](const ArrowSchema& schema, const ArrowArray& array) {
                            return add_numbers(schema, array, column.numbers);
                          });
    if (s.code() == Code::kUnsupported) {
      unfit_.emplace_back(name, s.message());
      column.numbers.present.assign(group.rows, false);
      return {};
    }
    if (!s.ok()) return s.with(fmt::format("column '{}'", name)).at(offset);
    if (column.numbers.present.size() != group.rows)
      return corrupt(fmt::format("column '{}' has {} rows, the row group {}", name,
                                 column.numbers.present.size(), group.rows))
          .at(offset);
    return {};
  }

  void add_value(const ParquetGroup& group, const Column& column, uint64_t row) {
    const ParquetLeaf& leaf = column.leaf;
    if (leaf.field.storage == Storage::kInline) {
      if (!column.numbers.present[row]) return;
      if (leaf.field.kind == Kind::kInt)
        part_.add_int(column.field, column.numbers.ints[row]);
      else
        part_.add_float(column.field, column.numbers.floats[row]);
      return;
    }
    const ParquetChunk& chunk = group.chunks[leaf.leaf];
    part_.add_extent(column.field, {.offset = chunk.offset,
                                    .stored = 0,
                                    .decoded = opened_bytes(group, chunk),
                                    .begin = row,
                                    .length = kRow,
                                    .encoding = 1 + leaf.leaf});
  }

  void notice_large_groups() {
    uint64_t largest = 0;
    for (const ParquetGroup& group : layout_.groups) {
      uint64_t bytes = 0;
      for (const ParquetChunk& chunk : group.chunks) bytes += chunk.decoded;
      largest = std::max(largest, bytes);
    }
    if (largest > kLargeGroup)
      part_.head().notices.push_back(
          fmt::format("row groups of up to {} MiB, of which shuffling holds several at a time: "
                      "`headrace pack --to parquet` makes small ones",
                      largest >> 20));
  }

  const ShardInput& shard_;
  std::vector<std::pair<std::string, std::string>>& unfit_;
  size_t known_unfit_ = 0;
  NumberedKeys keys_;
  PartBuilder part_;
  ParquetLayout layout_;
  std::vector<Column> columns_;
  std::optional<uint32_t> key_;  // its leaf
};

Result<PartPointer> index(const ShardInput& shard) {
  std::vector<std::pair<std::string, std::string>> unfit;
  while (true) {
    Result<PartPointer> part = ParquetIndexer(shard, unfit).run();
    if (!part.ok()) return part.status().in_file(shard.info.path);
    if (part.value() != nullptr) return part;
  }
}

Status decode_unit(const Store& store, const std::string& path, const Unit& unit, Bytes,
                   Buffer& decoded) {
  return open_column(store, path, unit.offset, unit.encoding - 1, 0, decoded);
}

bool sniff(Bytes head) {
  const std::string_view text = as_text(head);
  return text.starts_with("PAR1") || text.starts_with("PARE");
}

Result<std::unique_ptr<Writer>> create(ShardOutput out) {
  return make_parquet_writer(std::move(out));
}

}  // namespace

extern constinit const Format parquet_format{
    .name = "parquet",
    .doc =
        "tables of columns, through pyarrow: a row is a sample, only the wanted columns are read",
    .suffixes = kSuffixes,
    .needs_python = true,
    .guards_lengths = false,
    .sniff = sniff,
    .index = index,
    .create = create,
    .can_hold = parquet_can_hold,
    .decode_unit = decode_unit,
};

}  // namespace headrace
