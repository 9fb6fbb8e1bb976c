// SPDX-License-Identifier: Apache-2.0
#include "engine/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/elements.h"
#include "codec/widen.h"
#include "engine/values.h"
#include "engine/work.h"
#include "index/row_maker.h"
#include "storage/routed.h"

namespace headrace {
namespace {

constexpr size_t kLine = 64;                   // bytes of a cache line
constexpr size_t kLongRow = size_t{64} << 10;  // memcpy knows better how to copy more than this

// While one row is copied, the next one's first lines and its last are fetched; the processor
// follows between them by itself.  The last often lies in a page of its own, and memcpy begins with
// it (docs/measurements.md has figures).  Inlined by force: gcc takes a
// function that does nothing but fetch for one without effect, and leaves its calls out.
[[gnu::always_inline]] inline void prefetch(const std::byte* row, uint64_t bytes) {
  for (size_t at = 0; at < std::min<size_t>(4 * kLine, bytes); at += kLine)
    __builtin_prefetch(row + at);
  __builtin_prefetch(row + bytes - 1);
}

// Whether the source makes the values of the field of what it knows, so that nothing is read.
bool needs_nothing(const Source& source, uint32_t field) {
  if (source.size() == 0) return false;
  Request needs;
  needs.clear();
  const SampleAsk ask{.sample = 0, .fields = {&field, 1}};
  return source.needs(ask, needs).ok() && needs.units.empty();
}

// A slot of a dense column.
class DenseRoom final : public ValueRoom {
 public:
  explicit DenseRoom(MutableBytes slot) : slot_(slot) {}
  Result<MutableBytes> room(size_t bytes) override {
    if (slot_.size() != bytes)
      return corrupt(fmt::format("a value of {} bytes, {} are promised", bytes, slot_.size()));
    return slot_;
  }
  bool is_last() const override { return true; }

 private:
  const MutableBytes slot_;
};

}  // namespace

std::optional<RowColumns> row_columns(const SourceWork& source,
                                      const std::vector<ColumnWork>& columns) {
  if (source.policy.is_far || source.policy.runs) return std::nullopt;
  const auto* const maker = dynamic_cast<const RowMaker*>(source.source.get());
  RowColumns out;
  for (size_t c = 0; c < columns.size(); ++c) {
    const ColumnSpec& spec = columns[c].spec;
    if (columns[c].presence_of || spec.many || spec.packing != Packing::kDense) return std::nullopt;
    if (source.fields[c] == kKeyField || source.fields[c] == kNoField) return std::nullopt;
    if (maker != nullptr && maker->makes_rows(source.fields[c]) &&
        source.decoders[c]->keeps_elements() && source.absent_of(c) == nullptr) {
      RowColumn& made = out.emplace_back();
      made.field = source.fields[c];
      made.is_made = true;
      continue;
    }
    if (source.absent_of(c) == nullptr &&
        assembles_into_slot({*source.decoders[c], spec, source.fields[c]}, *source.source) &&
        needs_nothing(*source.source, source.fields[c])) {
      RowColumn& assembled = out.emplace_back();
      assembled.field = source.fields[c];
      assembled.is_assembled = true;
      continue;
    }
    const uint64_t bytes = source.source->row_bytes(source.fields[c]);
    const std::optional<Conversion> types = source.decoders[c]->converts();
    if (bytes == 0 || !types) return std::nullopt;
    // Else the decoder says what is wrong, sample by sample.
    if (bytes / size_of(types->from) * size_of(types->to) != spec.value.bytes())
      return std::nullopt;
    out.push_back({source.fields[c], bytes, *types});
  }
  if (out.empty()) return std::nullopt;
  return out;
}

RowFiller::RowFiller(const EngineWork& work)
    : work_(work),
      sources_(work.sources),
      rows_(work.rows),
      assembled_(work.rows.size()),
      files_(work.sources.size()) {
  for (size_t k = 0; k < rows_.size(); ++k)
    for (size_t c = 0; c < rows_[k].size(); ++c) {
      if (!rows_[k][c].is_assembled) continue;
      assembled_[k].columns.push_back(c);
      assembled_[k].fields.push_back(rows_[k][c].field);
    }
}

Result<bool> RowFiller::fill(const SlotRange& slots, const Bad& bad) {
  PlannedStep& step = *slots.step;
  const std::vector<Task>& tasks = step.tasks();
  bytes_ = 0;
  bad_.clear();
  for (uint32_t k = 0; k < sources_.size(); ++k) {
    samples_.clear();
    slots_.clear();
    for (size_t slot = slots.first; slot < slots.first + slots.count; ++slot) {
      if (tasks[slot].source != k) continue;
      samples_.push_back(tasks[slot].sample);
      slots_.push_back(slot);
    }
    if (samples_.empty()) continue;
    HEADRACE_ASSIGN(const bool filled, fill_source(step, k));
    if (!filled) return false;
  }
  // Only now: where others fill the slots, they find out by themselves.
  for (auto& [slot, why] : bad_) bad(slot, std::move(why));
  return true;
}

Result<bool> RowFiller::fill_source(PlannedStep& step, size_t source) {
  is_bad_.assign(samples_.size(), false);
  for (size_t c = 0; c < rows_[source].size(); ++c) {
    if (rows_[source][c].is_assembled) continue;
    HEADRACE_ASSIGN(const bool filled, fill_column(step, source, c));
    if (!filled) return false;
  }
  return assembled_[source].columns.empty() ? true : assemble(step, source);
}

void RowFiller::note_bad(size_t i, Status why) {
  if (is_bad_[i]) return;
  is_bad_[i] = true;
  bad_.emplace_back(slots_[i], std::move(why));
}

Result<bool> RowFiller::fill_column(PlannedStep& step, size_t source, size_t c) {
  const RowColumn& row = rows_[source][c];
  places_.resize(samples_.size());
  HEADRACE_TRY(sources_[source].source->row_places(row.field, samples_, places_));
  const bool is_lent = find_lent(source, row);
  const MutableBytes dense = step.column(c).dense();
  const size_t stride = dense.size() / step.tasks().size();
  const bool is_copied =
      row.types.from == row.types.to && row.bytes == stride && row.bytes <= kLongRow;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const std::byte* const next = is_lent && i + 1 < slots_.size() ? lent_[i + 1] : nullptr;
    if (!is_lent && !read_row(source, row, places_[i])) return false;
    const Bytes from = is_lent ? Bytes(lent_[i], row.bytes) : request_.into.bytes();
    const MutableBytes to = dense.subspan(slots_[i] * stride, stride);
    if (!is_copied && widen(from, row.types.from, to, row.types.to, next)) continue;
    if (next != nullptr) prefetch(next, row.bytes);
    if (is_copied) {
      copy_row(from, to);
      continue;
    }
    const Status status = convert_elements(from, row.types.from, to, row.types.to);
    if (!status.ok()) note_bad(i, explain(status, source, places_[i], step.column(c).spec()));
  }
  bytes_ += row.bytes * slots_.size();
  return true;
}

// All assembled columns of a sample in one pass.
Result<bool> RowFiller::assemble(PlannedStep& step, size_t source) {
  const Source& of = *sources_[source].source;
  const Assembled& assembled = assembled_[source];
  for (size_t i = 0; i < samples_.size(); ++i) {
    const Task& task = step.tasks()[slots_[i]];
    const SampleAsk ask{.sample = task.sample,
                        .epoch = task.epoch,
                        .fields = assembled.fields,
                        .draws = work_.draws_of(task),
                        .epoch_draws = work_.epoch_draws_of(task)};
    needs_.clear();
    Status status = of.needs(ask, needs_);
    if (status.ok() && !needs_.units.empty()) return false;
    rooms_.clear();
    for (const size_t c : assembled.columns) {
      const MutableBytes dense = step.column(c).dense();
      const size_t stride = dense.size() / step.tasks().size();
      rooms_.push_back(dense.subspan(slots_[i] * stride, stride));
    }
    if (status.ok()) status = assemble_one(ask, of, rooms_);
    if (!status.ok()) note_bad(i, std::move(status));
  }
  return true;
}

Status RowFiller::assemble_one(const SampleAsk& ask, const Source& source,
                               std::span<const MutableBytes> rooms) {
  pieces_.clear();
  for (const Piece& piece : needs_.pieces) {
    const Bytes all(needs_.inline_bytes);
    if (piece.begin > all.size() ||
        (piece.length != kWholeFile && piece.length > all.size() - piece.begin))
      return corrupt("the index points past the end of its values");
    pieces_.push_back({all.subspan(piece.begin, std::min(piece.length, all.size() - piece.begin))});
  }
  // Each by itself, so that an error names its field.
  for (size_t f = 0; f < rooms.size(); ++f) {
    DenseRoom room(rooms[f]);
    const uint32_t first = needs_.first_piece[f];
    const AssembleOutput output{
        ask.fields[f],
        std::span<const PieceBytes>(pieces_).subspan(first, needs_.first_piece[f + 1] - first),
        &room};
    if (Status s = source.assemble(ask, {&output, 1}); !s.ok())
      return s.with(fmt::format("field '{}'", source.schema()[ask.fields[f]].name));
  }
  return {};
}

RowFiller::File& RowFiller::file_of(size_t source, uint32_t file) {
  std::vector<File>& files = files_[source];
  if (file >= files.size()) files.resize(size_t{file} + 1);
  File& out = files[file];
  if (!std::exchange(out.was_asked, true)) {
    const Source& of = *sources_[source].source;
    out.lent = of.store().pin(of.file_path(file), 0, kWholeFile);
  }
  return out;
}

// Where all rows lie, if the store lends them.  What is not whole is read(), which says why.
bool RowFiller::find_lent(size_t source, const RowColumn& row) {
  lent_.clear();
  for (const RowPlace& place : places_) {
    const File& file = file_of(source, place.file);
    if (!file.lent) return false;
    const Bytes all = file.lent->bytes();
    if (place.offset > all.size() || row.bytes > all.size() - place.offset) return false;
    lent_.push_back(all.data() + place.offset);
  }
  return true;
}

bool RowFiller::read_row(size_t source, const RowColumn& row, const RowPlace& place) {
  const Source& of = *sources_[source].source;
  if (request_source_ != source || request_file_ != place.file) {
    request_.path = of.file_path(place.file);
    request_source_ = source;
    request_file_ = place.file;
  }
  request_.offset = place.offset;
  request_.length = row.bytes;
  request_.version.clear();
  return of.store().read_if_resident(request_) && request_.into.size() == row.bytes;
}

// As Gather::locate() does: the file, and the offset in it.
Status RowFiller::explain(Status status, size_t source, const RowPlace& place,
                          const ColumnSpec& spec) const {
  const int64_t inner = status.place().offset;
  if (inner >= 0)
    status =
        Status(status.code(), fmt::format("{} (byte {} of the value)", status.message(), inner));
  return status.with(fmt::format("field '{}'", spec.name))
      .at(place.offset + static_cast<uint64_t>(std::max<int64_t>(0, inner)))
      .in_file(plain_path(sources_[source].source->file_path(place.file)));
}

}  // namespace headrace
