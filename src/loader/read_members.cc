// SPDX-License-Identifier: Apache-2.0
#include "loader/read_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

#include "base/json.h"
#include "base/machine.h"
#include "base/mutex.h"
#include "base/parallel.h"
#include "codec/image.h"
#include "engine/gather.h"
#include "engine/read_now.h"
#include "loader/field.h"
#include "loader/peek.h"

namespace headrace {
namespace {

constexpr uint64_t kTogether = 256;                   // samples that a thread takes at a time
constexpr uint64_t kUnitBytes = uint64_t{256} << 20;  // opened units that are kept
constexpr uint64_t kHeadBytes = 4096;                 // of a picture; then 16 times more, and all

using Cell = std::variant<std::monostate, int64_t, double, std::string>;

Result<Cell> number_of(const std::string& digits) {
  int64_t whole = 0;
  const char* const end = digits.data() + digits.size();
  if (const auto [at, error] = std::from_chars(digits.data(), end, whole);
      error == std::errc() && at == end)
    return Cell(whole);
  double real = 0;
  const auto [at, error] = std::from_chars(digits.data(), end, real);
  if (error != std::errc() || at != end) return corrupt(fmt::format("no number: {}", digits));
  return Cell(real);
}

Result<Cell> cell_of(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return Cell();
    case Json::Type::kFalse:
      return Cell(int64_t{0});
    case Json::Type::kTrue:
      return Cell(int64_t{1});
    case Json::Type::kNumber:
      return number_of(value.text());
    case Json::Type::kText:
      return Cell(value.text());
    default:
      return invalid(value.is_list() ? "is a list: look at it with a function"
                                     : "is an object: name one of its members");
  }
}

// "a.b" of {"a": {"b": 1}}, or of {"a.b": 1}.
const Json* member_of(const Json& value, std::string_view name) {
  if (const Json* found = value.find(name)) return found;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
    if (const Json* inner = value.find(name.substr(0, dot)))
      if (const Json* found = member_of(*inner, name.substr(dot + 1))) return found;
  return nullptr;
}

// One column on its way.  Thread-safe but for the cells, of which each call has its own.
class MemberReader {
 public:
  MemberReader(const Source& source, const MemberQuery& query, std::vector<uint32_t> fields)
      : source_(source), query_(query), fields_(std::move(fields)) {
    is_json_ = source_.schema()[fields_[0]].kind == Kind::kJson;
  }

  Status read(uint64_t begin, uint64_t end, std::span<Cell> cells) {
    for (uint64_t s = begin; s < end; ++s) {
      Request request;
      Status status = source_.needs({.sample = s, .fields = fields_}, request);
      if (status.ok()) status = read_sample(s, request, cells[s - begin]);
      if (!status.ok())
        return status.with(fmt::format("'{}.{}'", query_.fields[0], query_.member))
            .of_sample(s, source_.key(s));
    }
    return {};
  }

 private:
  Status read_sample(uint64_t sample, const Request& request, Cell& cell) {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const auto pieces = std::span(request.pieces)
                              .first(request.first_piece[f + 1])
                              .subspan(request.first_piece[f]);
      if (pieces.empty() && !source_.assembles(fields_[f])) continue;
      if (!is_json_ && pieces.size() == 1 && pieces[0].unit != kInlineUnit &&
          pieces[0].length != kRow && request.units[pieces[0].unit].encoding == 0)
        return look_at_head(request.units[pieces[0].unit], pieces[0], cell);
      return look_at_value(sample, fields_[f], cell);
    }
    return {};
  }

  // Of a picture that lies in one piece: as little as says how large it is.
  Status look_at_head(const Unit& unit, const Piece& piece, Cell& cell) const {
    HEADRACE_ASSIGN(const StoredExtent value, extent_of(source_, unit, piece));
    Buffer head;
    Status last;
    for (uint64_t wanted = kHeadBytes;; wanted *= 16) {
      const uint64_t n = wanted > kHeadBytes * 16 ? value.length : std::min(wanted, value.length);
      HEADRACE_TRY(source_.store().read_at(value.path, value.offset, n, head));
      last = measure(head.bytes(), cell);
      if (last.ok() || n == value.length) break;
    }
    return last.ok() ? last : last.at(value.offset).in_file(value.path);
  }

  Status look_at_value(uint64_t sample, uint32_t field, Cell& cell) {
    Gather gather;
    const uint32_t fields[] = {field};
    HEADRACE_TRY(gather.add(source_, {.sample = sample, .fields = fields}));
    gather.plan_reads({}, &units_);
    read_now(gather, units_);
    if (units_.bytes() > kUnitBytes) units_.evict(units_.bytes() - kUnitBytes);
    if (gather.values(0, 0) == 0) return {};
    HEADRACE_ASSIGN(const Bytes value, gather.value(0, 0));
    const Status status = is_json_ ? take_member(value, cell) : measure(value, cell);
    return status.ok() ? status : gather.locate(status, 0, 0);
  }

  Status take_member(Bytes value, Cell& cell) const {
    HEADRACE_ASSIGN(const Json json, Json::parse(as_text(value)));
    const Json* found = member_of(json, query_.member);
    if (found == nullptr) return {};
    HEADRACE_ASSIGN(cell, cell_of(*found));
    return {};
  }

  Status measure(Bytes bytes, Cell& cell) const {
    HEADRACE_ASSIGN(const ImageCodec* codec, find_image_codec(bytes));
    HEADRACE_ASSIGN(const ImageInfo info, codec->probe(bytes));
    cell = int64_t{query_.member == "width" ? info.width : info.height};
    return {};
  }

  const Source& source_;
  const MemberQuery& query_;
  const std::vector<uint32_t> fields_;
  bool is_json_ = false;
  UnitCache units_;
};

Result<std::vector<uint32_t>> fields_of(const Source& source, const MemberQuery& query) {
  std::vector<uint32_t> out;
  bool json = false;
  for (const std::string& name : query.fields) {
    HEADRACE_ASSIGN(const uint32_t field, find_field(source.schema(), name));
    const Field& f = source.schema()[field];
    if (f.many) return invalid(fmt::format("field '{}' has several values a sample", name));
    json = json || f.kind == Kind::kJson;
    out.push_back(field);
  }
  if (out.empty()) return internal("no field is named");
  if (!json && query.member != "width" && query.member != "height")
    return invalid(fmt::format("'{}' is {}: of pictures width and height can be looked at",
                               query.fields[0], field_text(source.schema()[out[0]])));
  return out;
}

// What all cells are: whole numbers, numbers or texts.
Result<ColumnType> type_of(const MemberQuery& query, std::span<const Cell> cells) {
  std::optional<uint64_t> number, text;
  bool real = false;
  for (uint64_t s = 0; s < cells.size(); ++s) {
    if (std::holds_alternative<std::monostate>(cells[s])) continue;
    real |= std::holds_alternative<double>(cells[s]);
    std::optional<uint64_t>& first = std::holds_alternative<std::string>(cells[s]) ? text : number;
    if (!first) first = s;
    if (number && text)
      return invalid(fmt::format("'{}.{}' is a number in sample {} and a text in sample {}",
                                 query.fields[0], query.member, *number, *text));
  }
  if (!number && !text && !cells.empty())
    return invalid(fmt::format("no sample has '{}.{}'", query.fields[0], query.member));
  return text ? ColumnType::kText : real ? ColumnType::kFloat : ColumnType::kInt;
}

void put(const Cell& cell, FieldColumn& out) {
  out.present.push_back(std::holds_alternative<std::monostate>(cell) ? 0 : 1);
  const auto* whole = std::get_if<int64_t>(&cell);
  const auto* real = std::get_if<double>(&cell);
  const auto* text = std::get_if<std::string>(&cell);
  if (out.type == ColumnType::kInt) out.ints.push_back(whole != nullptr ? *whole : 0);
  if (out.type == ColumnType::kFloat)
    out.floats.push_back(real != nullptr    ? *real
                         : whole != nullptr ? static_cast<double>(*whole)
                                            : 0);
  if (out.type == ColumnType::kText) out.texts.push_back(text != nullptr ? *text : std::string());
}

}  // namespace

Result<FieldColumn> read_members(const Source& source, const MemberQuery& query,
                                 const ScanOptions& options) {
  HEADRACE_ASSIGN(std::vector<uint32_t> fields, fields_of(source, query));
  MemberReader reader(source, query, std::move(fields));
  const uint64_t size = source.size();
  std::vector<Cell> cells(size);
  const unsigned threads =
      options.threads != 0 ? options.threads : static_cast<unsigned>(usable_cpus());
  Mutex mu;
  uint64_t done = 0;
  const auto read_chunk = [&](size_t chunk) -> Status {
    if (options.cancel != nullptr && options.cancel->load()) return cancelled("was cancelled");
    const uint64_t begin = chunk * kTogether;
    const uint64_t end = std::min(begin + kTogether, size);
    HEADRACE_TRY(reader.read(begin, end, std::span(cells).subspan(begin, end - begin)));
    MutexLock lock(mu);
    done += end - begin;
    if (options.progress) options.progress(done, size);
    return {};
  };
  HEADRACE_TRY(parallel_for((size + kTogether - 1) / kTogether, threads, read_chunk));
  FieldColumn out{.present = {}};
  HEADRACE_ASSIGN(out.type, type_of(query, cells));
  for (Cell& cell : cells) put(cell, out);
  return out;
}

}  // namespace headrace
