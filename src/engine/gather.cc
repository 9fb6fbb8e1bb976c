// SPDX-License-Identifier: Apache-2.0
#include "engine/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/row_table.h"

namespace headrace {
namespace {

// The first piece of value v; the last piece where all values lie in a row of a table.
size_t piece_of_value(std::span<const Piece> pieces, size_t v) {
  size_t at = 0;
  for (; v > 0 && at + 1 < pieces.size(); --v) {
    ++at;
    while (pieces[at].continues && at + 1 < pieces.size()) ++at;
  }
  return at;
}

}  // namespace

void Gather::clear() {
  for (ReadRange& range : ranges_)
    if (range.own.capacity() > 0) spare_.push_back(std::move(range.own));
  ranges_.clear();
  shared_.clear();
  requests_ = {};
}

Gather::Entry& Gather::next_entry() {
  const size_t used = requests_.size();
  if (used == entries_.size()) entries_.emplace_back();
  requests_ = std::span(entries_).first(used + 1);
  return requests_.back();
}

Status Gather::add(const Source& source, uint64_t sample, std::span<const uint32_t> fields,
                   Key draws, bool want_key) {
  Entry& entry = next_entry();
  entry.source = &source;
  entry.sample = sample;
  entry.fields.assign(fields.begin(), fields.end());
  entry.draws = draws;
  entry.request.clear();
  entry.places.clear();
  return source.needs(sample, fields, draws, want_key, entry.request);
}

uint32_t Gather::share(const Source& source, const Unit& unit, UnitCache& units) {
  for (uint32_t k = 0; k < shared_.size(); ++k)
    if (shared_[k]->source == &source && shared_[k]->unit == unit) return k;
  shared_.push_back(units.pin(source, unit));
  return static_cast<uint32_t>(shared_.size() - 1);
}

// Finds the unit in the run of its block; false when it does not lie there.
bool Gather::share_run(const Entry& entry, const Unit& unit, UnitCache& units, Place& place) {
  Unit run;
  if (unit.stored_bytes == kWholeFile || !entry.source->run_of(entry.sample, run)) return false;
  const bool inside = run.file == unit.file && unit.offset >= run.offset &&
                      unit.offset - run.offset + unit.stored_bytes <= run.stored_bytes;
  if (!inside) return false;
  place.is_shared = true;
  place.range = share(*entry.source, run, units);
  place.begin = unit.offset - run.offset;
  return true;
}

void Gather::open_range(const Source& source, const Unit& unit, const GatherOptions& options) {
  ReadRange& range = ranges_.emplace_back();
  range.source = &source;
  range.path = source.file_path(unit.file);
  range.offset = unit.offset;
  range.length = unit.stored_bytes;
  if (options.pool != nullptr) {
    range.shared =
        options.pool->take(unit.stored_bytes == kWholeFile ? options.nominal : unit.stored_bytes);
  } else if (!spare_.empty()) {
    range.own = std::move(spare_.back());
    spare_.pop_back();
  }
}

void Gather::plan_reads(const GatherOptions& options, UnitCache* units) {
  struct Want {
    const Source* source;
    const Unit* unit;
    Place* place;
  };
  std::vector<Want> wants;
  opens_ = false;
  for (Entry& entry : requests_) {
    entry.places.resize(entry.request.units.size());
    for (size_t u = 0; u < entry.request.units.size(); ++u) {
      const Unit& unit = entry.request.units[u];
      Place& place = entry.places[u];
      place = {.length = unit.stored_bytes};
      opens_ = opens_ || (unit.encoding != 0 && unit.unshared);
      if (unit.encoding != 0 && !unit.unshared && units != nullptr) {
        place.is_shared = true;
        place.range = share(*entry.source, unit, *units);
        place.length = kWholeFile;  // pieces count in opened bytes
      } else if (!options.runs || units == nullptr || !share_run(entry, unit, *units, place)) {
        wants.push_back({entry.source, &unit, &place});
      }
    }
  }
  std::sort(wants.begin(), wants.end(), [](const Want& a, const Want& b) {
    return std::tuple(a.source, a.unit->file, a.unit->offset) <
           std::tuple(b.source, b.unit->file, b.unit->offset);
  });
  const Want* last = nullptr;
  for (const Want& w : wants) {
    ReadRange* range = ranges_.empty() ? nullptr : &ranges_.back();
    const bool near = last != nullptr && last->source == w.source &&
                      last->unit->file == w.unit->file && w.unit->stored_bytes != kWholeFile &&
                      range->length != kWholeFile &&
                      w.unit->offset <= range->offset + range->length + options.gap_bytes &&
                      w.unit->offset + w.unit->stored_bytes - range->offset <= options.most_bytes;
    const bool same = last != nullptr && last->source == w.source && *last->unit == *w.unit;
    if (near) {
      range->length =
          std::max(range->length, w.unit->offset + w.unit->stored_bytes - range->offset);
    } else if (!same) {
      open_range(*w.source, *w.unit, options);
    }
    ++ranges_.back().values;
    w.place->range = static_cast<uint32_t>(ranges_.size() - 1);
    w.place->begin = w.unit->offset - ranges_.back().offset;
    last = &w;
  }
  // Values that are handed over need memory of their own.
  if (options.pool != nullptr) return;
  for (ReadRange& range : ranges_)
    range.there = range.source->store().pin(range.path, range.offset, range.length);
}

void Gather::lend(std::vector<Buffer>& warm) {
  for (ReadRange& range : ranges_) {
    if (range.there || range.shared || warm.empty()) continue;
    if (range.own.capacity() > 0) spare_.push_back(std::move(range.own));
    range.own = std::move(warm.back());
    warm.pop_back();
  }
}

void Gather::take_back(std::vector<Buffer>& warm) {
  for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range)
    if (range->own.capacity() > 0) warm.push_back(std::move(range->own));
}

size_t Gather::ranges_to_read() const {
  return static_cast<size_t>(
      std::count_if(ranges_.begin(), ranges_.end(), [](const ReadRange& r) { return !r.there; }));
}

uint64_t Gather::bytes_to_read(uint64_t nominal) const {
  uint64_t sum = 0;
  for (const ReadRange& r : ranges_)
    if (!r.there) sum += r.length == kWholeFile ? nominal : r.length;
  return sum;
}

size_t Gather::values(size_t i, size_t field) const {
  const Entry& entry = requests_[i];
  const Request& r = entry.request;
  if (field + 1 >= r.first_piece.size()) return 0;
  if (assembles(i, field)) return 1;
  const auto pieces = std::span(r.pieces).subspan(r.first_piece[field],
                                                  r.first_piece[field + 1] - r.first_piece[field]);
  if (pieces.size() == 1 && pieces[0].length == kRow) {
    const Result<Bytes> unit = opened(entry, pieces[0]);
    const Result<RowTable> table = unit.ok() ? RowTable::open(unit.value()) : unit.status();
    return table.ok() ? table.value().values(pieces[0].begin) : 1;  // value() says what is wrong
  }
  return static_cast<size_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return !p.continues; }));
}

Result<Bytes> Gather::opened(const Entry& entry, const Piece& piece) const {
  if (piece.unit == kInlineUnit) return Bytes(entry.request.inline_bytes);
  const Place& place = entry.places[piece.unit];
  const Status& status =
      place.is_shared ? shared_[place.range]->status : ranges_[place.range].status;
  if (!status.ok()) return status;
  const Bytes all = place.is_shared ? shared_[place.range]->bytes() : ranges_[place.range].bytes();
  if (place.length == kWholeFile) return all;
  if (place.begin > all.size() || place.length > all.size() - place.begin)
    return corrupt("the index points past the end of its unit");
  return all.subspan(place.begin, place.length);
}

Result<Bytes> Gather::piece_bytes(const Entry& entry, const Piece& piece) const {
  HEADRACE_ASSIGN(const Bytes unit, opened(entry, piece));
  if (piece.begin > unit.size()) return corrupt("the index points past the end of its unit");
  const Bytes from = unit.subspan(piece.begin);
  if (piece.length == kWholeFile) return from;
  if (piece.length > from.size()) return corrupt("the index points past the end of its unit");
  return from.first(piece.length);
}

bool Gather::assembles(size_t i, size_t field) const {
  const Entry& entry = requests_[i];
  return entry.source->assembles(entry.fields[field]);
}

Status Gather::assemble(size_t i, size_t field, ValueRoom& into) {
  const Entry& entry = requests_[i];
  const Request& r = entry.request;
  pieces_.clear();
  for (uint32_t p = r.first_piece[field]; p < r.first_piece[field + 1]; ++p) {
    const Piece& piece = r.pieces[p];
    const bool alone = piece.unit != kInlineUnit && r.units[piece.unit].unshared;
    HEADRACE_ASSIGN(const Bytes bytes, alone ? opened(entry, piece) : piece_bytes(entry, piece));
    pieces_.push_back({bytes, alone ? &r.units[piece.unit] : nullptr});
  }
  return entry.source->assemble(entry.sample, entry.fields[field], entry.draws, pieces_, into);
}

Result<Bytes> Gather::value(size_t i, size_t field, size_t v) {
  const Entry& entry = requests_[i];
  if (assembles(i, field)) {
    KeptRoom room(joined_);
    HEADRACE_TRY(assemble(i, field, room));
    return Bytes(joined_);
  }
  const auto pieces = std::span(entry.request.pieces)
                          .first(entry.request.first_piece[field + 1])
                          .subspan(entry.request.first_piece[field]);
  if (pieces[0].length == kRow) {
    HEADRACE_ASSIGN(const Bytes unit, opened(entry, pieces[0]));
    HEADRACE_ASSIGN(const RowTable table, RowTable::open(unit));
    return table.value(pieces[0].begin, v);
  }
  const size_t begin = piece_of_value(pieces, v);
  size_t end = begin + 1;
  while (end < pieces.size() && pieces[end].continues) ++end;
  if (end == begin + 1) return piece_bytes(entry, pieces[begin]);
  joined_.clear();
  for (size_t p = begin; p < end; ++p) {
    HEADRACE_ASSIGN(const Bytes bytes, piece_bytes(entry, pieces[p]));
    joined_.insert(joined_.end(), bytes.begin(), bytes.end());
  }
  return Bytes(joined_);
}

SharedBuffer Gather::take(size_t i, size_t field, size_t v) {
  const Entry& entry = requests_[i];
  if (assembles(i, field)) return nullptr;
  const auto pieces = std::span(entry.request.pieces)
                          .first(entry.request.first_piece[field + 1])
                          .subspan(entry.request.first_piece[field]);
  const size_t begin = piece_of_value(pieces, v);
  const Piece& piece = pieces[begin];
  const bool alone = begin + 1 == pieces.size() || !pieces[begin + 1].continues;
  if (!alone || piece.unit == kInlineUnit || entry.places[piece.unit].is_shared) return nullptr;
  ReadRange& range = ranges_[entry.places[piece.unit].range];
  if (!range.shared || range.values != 1 || !range.status.ok() || piece.begin != 0) return nullptr;
  if (piece.length != kWholeFile && piece.length != range.shared->size()) return nullptr;
  return std::move(range.shared);
}

Status Gather::locate(Status status, size_t i, size_t field, size_t v) const {
  if (!status.place().file.empty()) return status;  // the source itself knew the place
  const Entry& entry = requests_[i];
  if (!status.place().file.empty()) return status;  // of reading or decoding: it says where itself
  if (entry.request.first_piece[field] == entry.request.first_piece[field + 1]) return status;
  const auto pieces = std::span(entry.request.pieces)
                          .first(entry.request.first_piece[field + 1])
                          .subspan(entry.request.first_piece[field]);
  const Piece& piece = pieces[piece_of_value(pieces, v)];
  if (piece.unit == kInlineUnit) return status;
  const Unit& unit = entry.request.units[piece.unit];
  // A decoder names the offset within the value; the user wants the one in the file.
  const uint64_t start = unit.offset + (unit.encoding == 0 ? piece.begin : 0);
  const int64_t inner = status.place().offset;
  if (inner >= 0)
    status =
        Status(status.code(), fmt::format("{} (byte {} of the value)", status.message(), inner));
  return status.at(start + (inner >= 0 && unit.encoding == 0 ? static_cast<uint64_t>(inner) : 0))
      .in_file(entry.source->file_path(unit.file));
}

}  // namespace headrace
