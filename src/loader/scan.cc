// SPDX-License-Identifier: Apache-2.0
#include "loader/scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine.h"
#include "base/mutex.h"
#include "base/parallel.h"
#include "engine/read_now.h"
#include "format/inline_number.h"
#include "index/expression.h"
#include "index/split.h"
#include "loader/field.h"

namespace headrace {
namespace {

constexpr uint64_t kChunk = 16384;                    // samples a thread takes at a time
constexpr uint64_t kTogether = 256;                   // of which so many are asked for at once
constexpr uint64_t kUnitBytes = uint64_t{256} << 20;  // opened units that are kept

// What is wanted of each sample, checked once.  Immutable, hence thread-safe.
struct Wanted {
  std::vector<ColumnType> types;
  std::vector<int64_t> place;    // in `fields`; -1: the key
  std::vector<uint32_t> fields;  // of the schema
  bool key = false;
};

Result<ColumnType> type_of(const Field& field) {
  if (field.many) return invalid(fmt::format("field '{}' has several values a sample", field.name));
  switch (field.kind) {
    case Kind::kInt:
      return ColumnType::kInt;
    case Kind::kFloat:
      return ColumnType::kFloat;
    case Kind::kText:
      return ColumnType::kText;
    case Kind::kBytes:
      if (field.storage == Storage::kInline) return ColumnType::kText;
      [[fallthrough]];
    default:
      return invalid(
          fmt::format("field '{}' is {}: only numbers, texts and the key can be looked at",
                      field.name, field_text(field)));
  }
}

Result<Wanted> want(const Schema& schema, const std::vector<std::string>& names) {
  Wanted out;
  for (const std::string& name : names) {
    const auto found = find_field(schema, name);
    if (!found.ok() && name == kKeyColumn) {
      out.key = true;
      out.types.push_back(ColumnType::kText);
      out.place.push_back(-1);
      continue;
    }
    if (!found.ok()) return found.status();
    HEADRACE_ASSIGN(const ColumnType type, type_of(schema[found.value()]));
    out.types.push_back(type);
    out.place.push_back(static_cast<int64_t>(out.fields.size()));
    out.fields.push_back(found.value());
  }
  return out;
}

Status put_value(const Field& field, Bytes bytes, FieldColumn& out) {
  const RecordValue value{field.name, field.kind, field.storage, bytes};
  if (out.type == ColumnType::kInt) {
    HEADRACE_ASSIGN(out.ints.emplace_back(), int_of(value));
  } else if (out.type == ColumnType::kFloat) {
    HEADRACE_ASSIGN(out.floats.emplace_back(), float_of(value));
  } else {
    out.texts.emplace_back(as_text(bytes));
  }
  return {};
}

void put_nothing(FieldColumn& out) {
  if (out.type == ColumnType::kInt) out.ints.push_back(0);
  if (out.type == ColumnType::kFloat) out.floats.push_back(0);
  if (out.type == ColumnType::kText) out.texts.emplace_back();
}

// Thread-safe but for its Gather, which each call brings.
class Scanner {
 public:
  Scanner(const Source& source, Wanted wanted) : source_(source), wanted_(std::move(wanted)) {}

  const Wanted& wanted() const { return wanted_; }

  Result<std::vector<FieldColumn>> read(uint64_t begin, uint64_t end) {
    std::vector<FieldColumn> columns;
    for (const ColumnType type : wanted_.types) columns.push_back({.type = type, .present = {}});
    Gather gather;
    if (wanted_.key) HEADRACE_TRY(read_keys(begin, end, columns));
    if (wanted_.fields.empty()) return columns;
    for (uint64_t at = begin; at < end; at += kTogether)
      HEADRACE_TRY(read_some(gather, at, std::min(at + kTogether, end), columns));
    return columns;
  }

 private:
  Status read_keys(uint64_t begin, uint64_t end, std::vector<FieldColumn>& columns) const {
    for (size_t c = 0; c < columns.size(); ++c) {
      if (wanted_.place[c] >= 0) continue;
      HEADRACE_TRY(source_.keys(begin, end, columns[c].texts));
      columns[c].present.assign(end - begin, 1);
    }
    return {};
  }

  Status read_some(Gather& gather, uint64_t begin, uint64_t end,
                   std::vector<FieldColumn>& columns) {
    gather.clear();
    for (uint64_t s = begin; s < end; ++s)
      if (Status status = gather.add(source_, {.sample = s, .fields = wanted_.fields});
          !status.ok())
        return status.of_sample(s, source_.key(s));
    gather.plan_reads({}, &units_);
    read_now(gather, units_);
    if (units_.bytes() > kUnitBytes) units_.evict(units_.bytes() - kUnitBytes);
    for (size_t i = 0; i < gather.size(); ++i)
      for (size_t c = 0; c < columns.size(); ++c)
        if (Status status = take(gather, i, c, columns[c]); !status.ok())
          return status.of_sample(begin + i, source_.key(begin + i));
    return {};
  }

  Status take(Gather& gather, size_t i, size_t c, FieldColumn& out) const {
    if (wanted_.place[c] < 0) return {};  // read_keys() did
    const auto f = static_cast<size_t>(wanted_.place[c]);
    const bool there = gather.values(i, f) > 0;
    out.present.push_back(there);
    if (!there) {
      put_nothing(out);
      return {};
    }
    const Field& field = source_.schema()[wanted_.fields[f]];
    const Result<Bytes> value = gather.value(i, f);
    const Status status = value.ok() ? put_value(field, value.value(), out) : value.status();
    return status.ok() ? status : gather.locate(status, i, f);
  }

  const Source& source_;
  const Wanted wanted_;
  UnitCache units_;
};

// Calls look(chunk number, begin, end) for all samples [begin, end).
Status over_chunks(uint64_t begin, uint64_t end, const ScanOptions& options,
                   const std::function<Status(size_t, uint64_t, uint64_t)>& look) {
  const uint64_t total = end - begin;
  const unsigned threads =
      options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus());
  Mutex mu;
  uint64_t done = 0;
  return parallel_for((total + kChunk - 1) / kChunk, threads, [&](size_t chunk) -> Status {
    if (options.cancel != nullptr && options.cancel->load()) return cancelled("was cancelled");
    const uint64_t from = begin + chunk * kChunk;
    const uint64_t to = std::min(from + kChunk, end);
    HEADRACE_TRY(look(chunk, from, to));
    MutexLock lock(mu);
    done += to - from;
    if (options.progress) options.progress(done, total);
    return {};
  });
}

size_t chunks_of(uint64_t samples) {
  return (samples + kChunk - 1) / kChunk;
}

// Rows [begin, end).
FieldColumn rows_of(const FieldColumn& column, uint64_t begin, uint64_t end) {
  const auto cut = [&](const auto& list) {
    using List = std::decay_t<decltype(list)>;
    const auto from = static_cast<int64_t>(begin);
    const auto to = static_cast<int64_t>(end);
    return list.empty() ? List() : List(list.begin() + from, list.begin() + to);
  };
  return {column.type, cut(column.present), cut(column.ints), cut(column.floats),
          cut(column.texts)};
}

// Those that are read, and those that are given, in the order of `names`.
std::vector<FieldColumn> in_order(const std::vector<std::string>& names, const GivenColumns& given,
                                  std::vector<FieldColumn> read, uint64_t from, uint64_t to) {
  std::vector<FieldColumn> out;
  size_t next = 0;
  for (const std::string& name : names) {
    const auto found = given.find(name);
    out.push_back(found == given.end() ? std::move(read[next++])
                                       : rows_of(*found->second, from, to));
  }
  return out;
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

Result<std::vector<FieldColumn>> read_columns(const Source& source,
                                              const std::vector<std::string>& names, uint64_t begin,
                                              uint64_t end, const ScanOptions& options) {
  if (begin > end || end > source.size()) return invalid("no such samples");
  HEADRACE_ASSIGN(Wanted wanted, want(source.schema(), names));
  Scanner scanner(source, std::move(wanted));
  std::vector<std::vector<FieldColumn>> parts(chunks_of(end - begin));
  HEADRACE_TRY(
      over_chunks(begin, end, options, [&](size_t chunk, uint64_t from, uint64_t to) -> Status {
        HEADRACE_ASSIGN(parts[chunk], scanner.read(from, to));
        return {};
      }));
  std::vector<FieldColumn> out;
  for (const ColumnType type : scanner.wanted().types) out.push_back({.type = type, .present = {}});
  for (std::vector<FieldColumn>& part : parts)
    for (size_t c = 0; c < out.size(); ++c) {
      append(out[c].present, part[c].present);
      append(out[c].ints, part[c].ints);
      append(out[c].floats, part[c].floats);
      append(out[c].texts, part[c].texts);
    }
  return out;
}

Result<std::vector<uint64_t>> find_samples(const Source& source, std::string_view text,
                                           const ScanOptions& options, const GivenColumns& given) {
  HEADRACE_ASSIGN(const Expression expression, Expression::parse(text));
  std::vector<std::string> names;
  for (const std::string& name : expression.names()) {
    const auto found = given.find(name);
    if (found == given.end())
      names.push_back(name);
    else if (found->second->present.size() != source.size())
      return internal("a column of another length");
  }
  HEADRACE_ASSIGN(Wanted wanted, want(source.schema(), names));
  std::vector<ColumnType> types;
  size_t next = 0;
  for (const std::string& name : expression.names()) {
    const auto found = given.find(name);
    types.push_back(found == given.end() ? wanted.types[next++] : found->second->type);
  }
  HEADRACE_TRY(expression.check(types));
  Scanner scanner(source, std::move(wanted));
  std::vector<std::vector<uint64_t>> parts(chunks_of(source.size()));
  HEADRACE_TRY(over_chunks(
      0, source.size(), options, [&](size_t chunk, uint64_t from, uint64_t to) -> Status {
        HEADRACE_ASSIGN(std::vector<FieldColumn> read, scanner.read(from, to));
        const auto columns = in_order(expression.names(), given, std::move(read), from, to);
        const auto mask = expression.evaluate(columns, to - from);
        for (uint64_t s = from; s < to; ++s)
          if (mask[s - from] != 0) parts[chunk].push_back(s);
        return {};
      }));
  std::vector<uint64_t> out;
  for (std::vector<uint64_t>& part : parts) append(out, part);
  return out;
}

Result<std::vector<std::vector<uint64_t>>> split_by_key(const Source& source,
                                                        std::span<const double> shares,
                                                        uint64_t seed, const ScanOptions& options) {
  HEADRACE_TRY(check_shares(shares));
  const KeySplit split(shares, seed);
  std::vector<std::vector<uint32_t>> parts(chunks_of(source.size()));
  const auto look = [&](size_t chunk, uint64_t from, uint64_t to) -> Status {
    std::vector<std::string> keys;
    HEADRACE_TRY(source.keys(from, to, keys));
    for (const std::string& key : keys)
      parts[chunk].push_back(static_cast<uint32_t>(split.part_of(key)));
    return {};
  };
  HEADRACE_TRY(over_chunks(0, source.size(), options, look));
  std::vector<std::vector<uint64_t>> out(shares.size());
  for (size_t chunk = 0; chunk < parts.size(); ++chunk)
    for (size_t i = 0; i < parts[chunk].size(); ++i)
      if (parts[chunk][i] < out.size()) out[parts[chunk][i]].push_back(chunk * kChunk + i);
  return out;
}

}  // namespace headrace
