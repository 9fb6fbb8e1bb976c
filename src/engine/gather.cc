// SPDX-License-Identifier: Apache-2.0
#include "engine/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/block_samples.h"
#include "engine/run_parts.h"
#include "index/row_table.h"
#include "storage/routed.h"

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

const ReadPolicy Gather::kNearPolicy;

uint64_t Gather::samples_of_block(const Entry& entry) {
  const auto& blocks = entry.policy->block_samples;
  return blocks ? blocks->of(entry.ask.sample).count : 0;
}

RangePointer range_of(const Gather::Want& want) {
  auto range = std::make_shared<ReadRange>();
  range->source = want.source;
  range->source_number = want.source_number;
  range->path = want.source->file_path(want.unit->file);
  range->offset = want.unit->offset;
  range->length = want.unit->stored_bytes;
  return range;
}

void Gather::clear() {
  for (const RangePointer& range : ranges_)
    if (range->own.capacity() > 0) spare_.push_back(std::move(range->own));
  wants_.clear();
  ranges_.clear();
  shared_.clear();
  taken_.clear();
  requests_ = {};
}

Gather::Entry& Gather::next_entry() {
  const size_t used = requests_.size();
  if (used == entries_.size()) entries_.emplace_back();
  requests_ = std::span(entries_).first(used + 1);
  return requests_.back();
}

Status Gather::add(const Source& source, const SampleAsk& ask, const ReadPolicy& policy,
                   uint32_t source_number) {
  Entry& entry = next_entry();
  entry.source = &source;
  entry.source_number = source_number;
  entry.policy = &policy;
  entry.fields.assign(ask.fields.begin(), ask.fields.end());
  entry.ask = ask;
  entry.ask.fields = entry.fields;
  entry.request.clear();
  entry.places.clear();
  return source.needs(entry.ask, entry.request);
}

uint32_t Gather::share(const Source& source, const Unit& unit, UnitCache& units) {
  for (uint32_t k = 0; k < shared_.size(); ++k)
    if (shared_[k]->source == &source && shared_[k]->unit == unit) return k;
  shared_.push_back(units.pin(source, unit));
  taken_.emplace_back();
  return static_cast<uint32_t>(shared_.size() - 1);
}

// Finds the run of the sample's block; false when the unit does not lie in it.
bool Gather::find_run(const Entry& entry, const Unit& unit, Unit& run) {
  if (unit.stored_bytes == kWholeFile || !entry.source->run_of(entry.ask.sample, run)) return false;
  return run.file == unit.file && unit.offset >= run.offset &&
         unit.offset - run.offset + unit.stored_bytes <= run.stored_bytes;
}

bool Gather::share_run(const Entry& entry, const Unit& unit, const GatherOptions& options,
                       UnitCache& units, Place& place) {
  Unit run;
  if (!find_run(entry, unit, run) || units.take_rest(*entry.source, run, unit.stored_bytes))
    return false;
  const size_t shared_before = shared_.size();
  place.range = share(*entry.source, run, units);
  place.begin = unit.offset - run.offset;
  UnitPin& pin = shared_[place.range];
  // Values that are handed over need memory of their own.
  if (options.pool != nullptr && units.may_set_parts(pin.unit()))
    units.set_parts(pin.unit(), parts_of_run(*entry.source, entry.ask, *entry.policy, run));
  if (unit.stored_bytes > 0) place.part = pin.claim(place.begin, unit.stored_bytes);
  if (place.part == UnitPin::kNoPart) {
    shared_.resize(shared_before);
    taken_.resize(shared_before);
    place = {.length = unit.stored_bytes};
    return false;
  }
  place.is_shared = true;
  auto& [of_run, last] = taken_[place.range];
  if (last != &entry) ++of_run.samples;
  last = &entry;
  of_run.bytes += unit.stored_bytes;
  of_run.of_samples = samples_of_block(entry);
  return true;
}

// Before runs are read (GatherOptions::runs): the run, when it comes, has one sample less to give.
void Gather::read_singly(const Entry& entry, const Unit& unit, UnitCache& units) {
  Unit run;
  if (!find_run(entry, unit, run)) return;
  const bool is_first = &unit == entry.request.units.data();
  units.take_singly(*entry.source, run,
                    {is_first ? 1u : 0u, unit.stored_bytes, samples_of_block(entry)});
}

void Gather::resolve(const GatherOptions& options, UnitCache* units) {
  decodes_ = false;
  for (Entry& entry : requests_) {
    entry.places.resize(entry.request.units.size());
    for (size_t u = 0; u < entry.request.units.size(); ++u) {
      const Unit& unit = entry.request.units[u];
      Place& place = entry.places[u];
      place = {.length = unit.stored_bytes};
      decodes_ = decodes_ || (unit.encoding != 0 && unit.unshared);
      const bool runs = options.runs && entry.policy->runs && units != nullptr;
      if (entry.policy->runs && !runs && units != nullptr) read_singly(entry, unit, *units);
      if (unit.encoding != 0 && !unit.unshared && units != nullptr) {
        place.is_shared = true;
        place.range = share(*entry.source, unit, *units);
        place.length = kWholeFile;  // pieces count in decoded bytes
      } else if (!runs || !share_run(entry, unit, options, *units, place)) {
        Want& want = wants_.emplace_back();
        want.source = entry.source;
        want.source_number = entry.source_number;
        want.policy = entry.policy;
        want.unit = &unit;
        want.place = &place;
      }
    }
  }
  for (size_t k = 0; k < shared_.size(); ++k)
    if (taken_[k].last != nullptr) units->take(shared_[k].unit(), taken_[k].of_run);
  std::sort(wants_.begin(), wants_.end(), [](const Want& a, const Want& b) {
    return std::tuple(a.source, a.unit->file, a.unit->offset) <
           std::tuple(b.source, b.unit->file, b.unit->offset);
  });
}

RangePointer Gather::new_range(const Want& want, const GatherOptions& options) {
  RangePointer range = range_of(want);
  if (options.pool != nullptr) {
    range->shared = options.pool->take_later();
  } else if (!spare_.empty()) {
    range->own = std::move(spare_.back());
    spare_.pop_back();
  }
  return range;
}

void Gather::merge(const GatherOptions& options) {
  const Want* last = nullptr;
  for (Want& w : wants_) {
    ReadRange* range = ranges_.empty() ? nullptr : ranges_.back().get();
    const bool near = last != nullptr && last->source == w.source &&
                      last->unit->file == w.unit->file && w.unit->stored_bytes != kWholeFile &&
                      range->length != kWholeFile &&
                      w.unit->offset <= range->offset + range->length + w.policy->gap_bytes &&
                      w.end() - range->offset <= w.policy->most_bytes;
    const bool same = last != nullptr && last->source == w.source && *last->unit == *w.unit;
    if (near)
      range->length = std::max(range->length, w.end() - range->offset);
    else if (!same)
      ranges_.push_back(new_range(w, options));
    cover(w, ranges_.back());
    last = &w;
  }
  // Values that are handed over need memory of their own.
  if (options.pool != nullptr) return;
  for (const RangePointer& range : ranges_)
    range->resident = range->source->store().pin(range->path, range->offset, range->length);
}

void Gather::cover(Want& want, const RangePointer& range) {
  if (ranges_.empty() || ranges_.back() != range) ranges_.push_back(range);
  ++range->values;
  want.is_covered = true;
  want.place->range = static_cast<uint32_t>(ranges_.size() - 1);
  want.place->begin = want.unit->offset - range->offset;
}

void Gather::lend(std::vector<Buffer>& warm) {
  for (const RangePointer& range : ranges_) {
    if (range->resident || range->shared || warm.empty()) continue;
    if (range->own.capacity() > 0) spare_.push_back(std::move(range->own));
    range->own = std::move(warm.back());
    warm.pop_back();
  }
}

void Gather::take_back(std::vector<Buffer>& warm) {
  for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range)
    if ((*range)->own.capacity() > 0) warm.push_back(std::move((*range)->own));
}

size_t Gather::ranges_to_read() const {
  return static_cast<size_t>(std::count_if(ranges_.begin(), ranges_.end(),
                                           [](const RangePointer& r) { return !r->resident; }));
}

uint64_t Gather::bytes_to_read(uint64_t nominal) const {
  uint64_t sum = 0;
  for (const RangePointer& r : ranges_)
    if (!r->resident) sum += r->length == kWholeFile ? nominal : r->length;
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
    const Result<Bytes> unit = unit_bytes(entry, pieces[0]);
    const Result<RowTable> table = unit.ok() ? RowTable::open(unit.value()) : unit.status();
    return table.ok() ? table.value().values(pieces[0].begin) : 1;  // value() says what is wrong
  }
  return static_cast<size_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return !p.continues; }));
}

Result<Bytes> Gather::unit_bytes(const Entry& entry, const Piece& piece) const {
  if (piece.unit == kInlineUnit) return Bytes(entry.request.inline_bytes);
  const Place& place = entry.places[piece.unit];
  const Status& status =
      place.is_shared ? shared_[place.range]->status : ranges_[place.range]->status;
  if (!status.ok()) return status;
  if (place.length == 0) return Bytes();
  uint64_t begin = place.begin;
  Bytes all;
  if (place.is_shared && place.part != UnitPin::kWholeRun) {
    const RunPart& part = shared_[place.range]->parts[place.part];
    if (!part.memory) return internal("a value was handed over that somebody else wants");
    begin -= part.begin;
    all = part.memory->bytes();
  } else {
    all = place.is_shared ? shared_[place.range]->bytes() : ranges_[place.range]->bytes();
  }
  if (place.length == kWholeFile) return all;
  if (begin > all.size() || place.length > all.size() - begin)
    return corrupt("the index points past the end of its unit");
  return all.subspan(begin, place.length);
}

Result<Bytes> Gather::piece_bytes(const Entry& entry, const Piece& piece) const {
  HEADRACE_ASSIGN(const Bytes unit, unit_bytes(entry, piece));
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

Status Gather::assemble(size_t i, std::span<const AssembleInto> into) {
  const Entry& entry = requests_[i];
  const Request& r = entry.request;
  pieces_.clear();
  for (const auto& [field, room] : into)
    for (uint32_t p = r.first_piece[field]; p < r.first_piece[field + 1]; ++p) {
      const Piece& piece = r.pieces[p];
      const bool unshared = piece.unit != kInlineUnit && r.units[piece.unit].unshared;
      HEADRACE_ASSIGN(const Bytes bytes,
                      unshared ? unit_bytes(entry, piece) : piece_bytes(entry, piece));
      pieces_.push_back({bytes, unshared ? &r.units[piece.unit] : nullptr});
    }
  // Only now: the pieces do not move any more.
  outputs_.clear();
  size_t first = 0;
  for (const auto& [field, room] : into) {
    const size_t count = r.first_piece[field + 1] - r.first_piece[field];
    outputs_.push_back(
        {entry.fields[field], std::span<const PieceBytes>(pieces_).subspan(first, count), room});
    first += count;
  }
  return entry.source->assemble(entry.ask, outputs_);
}

Result<Bytes> Gather::value(size_t i, size_t field, size_t v) {
  const Entry& entry = requests_[i];
  if (assembles(i, field)) {
    KeptRoom room(joined_);
    const AssembleInto into{field, &room};
    HEADRACE_TRY(assemble(i, {&into, 1}));
    return Bytes(joined_);
  }
  const auto pieces = std::span(entry.request.pieces)
                          .first(entry.request.first_piece[field + 1])
                          .subspan(entry.request.first_piece[field]);
  if (pieces[0].length == kRow) {
    HEADRACE_ASSIGN(const Bytes unit, unit_bytes(entry, pieces[0]));
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
  const bool is_whole = begin + 1 == pieces.size() || !pieces[begin + 1].continues;
  if (!is_whole || piece.unit == kInlineUnit || piece.begin != 0) return nullptr;
  const Place& place = entry.places[piece.unit];
  if (place.is_shared) return take_part(place, piece);
  ReadRange& range = *ranges_[place.range];
  if (!range.shared || range.values != 1 || !range.status.ok()) return nullptr;
  if (piece.length != kWholeFile && piece.length != range.shared->size()) return nullptr;
  if (range.shared->capacity() == 0) {  // nothing was read: of no bytes, too, data() is somewhere
    range.shared->resize(1);
    range.shared->resize(0);
  }
  return std::move(range.shared);
}

// Of a run that was read in parts.
SharedBuffer Gather::take_part(const Place& place, const Piece& piece) const {
  const UnitPin& pin = shared_[place.range];
  if (place.part == UnitPin::kWholeRun || !pin->status.ok()) return nullptr;
  const RunPart& part = pin->parts[place.part];
  if (part.begin != place.begin || part.length != place.length) return nullptr;
  if (piece.length != kWholeFile && piece.length != place.length) return nullptr;
  return pin.hand_over(place.part);
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
      .in_file(plain_path(entry.source->file_path(unit.file)));
}

}  // namespace headrace
