// SPDX-License-Identifier: Apache-2.0
#include "array/array_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "array/array_blocks.h"
#include "array/array_boxes.h"
#include "array/array_rows.h"
#include "array/field_numbers.h"
#include "array/flat_values.h"
#include "array/lonely.h"
#include "array/member_sum.h"
#include "array/shared_chunks.h"
#include "array/unpack.h"
#include "index/part.h"

namespace headrace {
namespace {

// Immutable, hence thread-safe.
class ArraySource final : public Source {
 public:
  ArraySource(ArrayDescription d, std::shared_ptr<const Store> store)
      : d_(std::move(d)), store_(std::move(store)) {}

  Status prepare() {
    for (const ArrayField& field : d_.fields) {
      if (Status s = check_field(d_, field); !s.ok())
        return s.with(fmt::format("field '{}'", field.name));
      schema_.push_back(schema_of(d_, field));
      numbers_.push_back(numbers_of(d_, field));
    }
    HEADRACE_TRY(check_cases(d_));
    HEADRACE_ASSIGN(tiles_, count_tiles(d_));
    HEADRACE_TRY(check_positions(d_));
    HEADRACE_TRY(check_table(d_));
    find_chains();
    for (size_t f = 0; f < d_.fields.size(); ++f) rows_.emplace_back(d_, d_.fields[f], numbers_[f]);
    is_unshared_ = find_lonely(d_, tile_count(), *store_);
    blocks_ = cut_blocks(d_, size(), tile_count(), is_unshared_);
    fingerprint_ = fingerprint_of(d_, sizes_of_files(d_, *store_));
    return {};
  }

  const Schema& schema() const override { return schema_; }
  uint64_t size() const override { return positions() * tile_count(); }
  const Blocks& blocks() const override { return blocks_; }
  Hash128 fingerprint() const override { return fingerprint_; }

  Status needs(const SampleAsk& ask, Request& out) const override {
    out.clear();
    if (ask.sample >= size()) return invalid(fmt::format("sample {} of {}", ask.sample, size()));
    if (ask.want_key) out.key = key(ask.sample);
    for (const uint32_t f : ask.fields) {
      if (f >= d_.fields.size()) return internal("no such field");
      if (lead_of(d_.fields[f]).values) {
        HEADRACE_TRY(add_values(ask.sample, d_.fields[f], out));
        continue;
      }
      boxes_of(ask, d_.fields[f], [&](const ArrayBox& box) {
        if (box.is_missing) return;
        Unit unit = unit_of(box);
        unit.unshared = unit.encoding != 0 && is_unshared_[d_.fields[f].variables[box.variable]];
        out.pieces.push_back({add_unit(unit, out), 0, kWholeFile});
      });
      out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    }
    return {};
  }

  uint64_t row_bytes(uint32_t f) const override { return rows_[f].bytes(); }
  Status row_places(uint32_t f, std::span<const uint64_t> samples,
                    std::span<RowPlace> out) const override {
    for (size_t i = 0; i < samples.size(); ++i)
      if (samples[i] >= size() || !rows_[f].find(position(samples[i]), out[i]))
        return internal("no such row");
    return {};
  }

  // Values of variable length are byte extents as they lie, unless their bytes are to be turned.
  bool assembles(uint32_t f) const override {
    const Array& like = lead_of(d_.fields[f]);
    return !like.values || (like.big_endian && size_of(like.dtype) > 1);
  }

  Status assemble(const SampleAsk& ask, std::span<const AssembleOutput> outputs) const override {
    thread_local SharedChunks chunks;
    chunks.begin(outputs);
    if (!chunks.empty())
      for (const AssembleOutput& output : outputs) want_boxes(ask, output, chunks);
    Status status;
    for (const AssembleOutput& output : outputs)
      if (status = assemble_one(ask, output, chunks); !status.ok()) break;
    chunks.end();
    return status;
  }

  Status decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const override {
    if (unit.encoding == 0 || unit.encoding > chains_.size())
      return internal("no such chain of filters");
    const Chain& chain = chains_[unit.encoding - 1];
    count_opening();
    HEADRACE_TRY(undo_filters(chain.filters, chain.skipped, stored, unit.decoded_bytes, decoded));
    const auto summed = summed_.find({unit.file, unit.offset});
    return summed == summed_.end() ? Status() : check_sum(*summed->second, decoded.bytes());
  }

  const Store& store() const override { return *store_; }
  std::string file_path(uint32_t file) const override {
    return file < d_.files.size() ? d_.files[file] : std::string();  // all chunks may be missing
  }
  std::string key(uint64_t sample) const override {
    if (sample >= size()) return {};
    const int64_t at = position(sample / tile_count());
    const std::string name =
        d_.samples.cases ? d_.samples.names[static_cast<size_t>(at)] : fmt::format("{}", at);
    return tile_count() == 1 ? name : fmt::format("{}/{}", name, sample % tile_count());
  }

 private:
  struct Chain {
    FilterChain filters;
    uint32_t skipped = 0;
    bool operator==(const Chain&) const = default;
  };

  const Array& lead_of(const ArrayField& field) const {
    return *d_.variables[field.variables[0]].segments[0];
  }

  // All values of the sample's position; each is a unit that nobody shares.
  Status add_values(uint64_t sample, const ArrayField& field, Request& out) const {
    const Variable& variable = d_.variables[field.variables[0]];
    const int64_t place = position(sample / tile_count());
    auto at = static_cast<uint64_t>(variable.along ? place : 0);
    size_t segment = d_.samples.cases ? static_cast<size_t>(place) : 0;
    const uint64_t count =
        d_.samples.cases ? static_cast<uint64_t>(elements_in(variable.segments[segment]->shape))
                         : values_in_sample(variable);
    for (; variable.along && segment + 1 < variable.segments.size(); ++segment) {
      const auto extent = static_cast<uint64_t>(variable.segments[segment]->shape[0]);
      if (at < extent) break;
      at -= extent;
    }
    const ValueTable& table = *variable.segments[segment]->values;
    for (uint64_t v = at * count; v < (at + 1) * count; ++v) {
      if (table.by_number) {
        out.pieces.push_back({static_cast<uint32_t>(out.units.size()), 0, kWholeFile});
        out.units.push_back({table.file, 0, v, kWholeFile, kWholeFile});
        continue;
      }
      if (const auto bad = table.damaged.find(v); bad != table.damaged.end()) return bad->second;
      const ValueExtent& extent = table.extents[v];
      if (extent.bytes == 0) {
        out.pieces.push_back({kInlineUnit, 0, 0});
      } else if (!table.literal.empty()) {
        const auto from = table.literal.begin() + static_cast<std::ptrdiff_t>(extent.offset);
        out.pieces.push_back({kInlineUnit, out.inline_bytes.size(), extent.bytes});
        out.inline_bytes.insert(out.inline_bytes.end(), from,
                                from + static_cast<std::ptrdiff_t>(extent.bytes));
      } else if (!table.runs.empty()) {
        add_flat_value(table, extent, out);
      } else {
        out.pieces.push_back({static_cast<uint32_t>(out.units.size()), 0, kWholeFile});
        out.units.push_back({table.file, 0, extent.offset, extent.bytes, extent.bytes});
      }
    }
    out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
    return {};
  }

  // 0: numbers before they are unpacked; 1: a part of a chunk.
  static Buffer& scratch(size_t which) {
    thread_local std::array<Buffer, 2> buffers;
    return buffers[which];
  }

  // One value.
  Status assemble_one(const SampleAsk& ask, const AssembleOutput& output,
                      SharedChunks& chunks) const {
    const uint32_t f = output.field;
    const std::span<const PieceBytes> pieces = output.pieces;
    ValueRoom& value = *output.value;
    const ArrayField& field = d_.fields[f];
    const int64_t at = position(ask.sample / tile_count());
    const Array& like = array_at(d_, field.variables[0], at);
    const size_t item = size_of(like.dtype);
    if (like.values) {
      const Bytes stored = pieces[0].bytes;
      HEADRACE_ASSIGN(const MutableBytes out, value.room(stored.size()));
      std::copy(stored.begin(), stored.end(), out.begin());
      swap_bytes(out, item);
      return {};
    }
    const Extents shape = region_shape(d_, field, at);
    const auto elements = static_cast<size_t>(elements_in(shape));
    const FieldNumbers& how = numbers_[f];
    const size_t stored = elements * how.item_begins.back();
    if (field.kind != Kind::kArray) {
      scratch(0).resize(stored);
      HEADRACE_TRY(gather_boxes(ask, f, pieces, shape, scratch(0).span(), NextUse::kRead, chunks));
      const Bytes text = end_text(like.text_end, scratch(0).bytes());
      HEADRACE_ASSIGN(const MutableBytes out, value.room(text.size()));
      std::copy(text.begin(), text.end(), out.begin());
      return {};
    }
    const std::string header =
        how.has_header ? npy_header(d_, field, how.dtype, at) : std::string();
    const size_t made = elements * size_of(how.dtype);
    HEADRACE_ASSIGN(const MutableBytes room,
                    value.room(header.size() + made * field.variables.size()));
    std::ranges::copy(as_bytes(header), room.begin());
    const MutableBytes out = room.subspan(header.size());
    MutableBytes raw = out;
    if (how.unpacks) {
      scratch(0).resize(stored);
      raw = scratch(0).span();
    }
    const bool rests = value.is_last() && how.lies_ready;
    HEADRACE_TRY(
        gather_boxes(ask, f, pieces, shape, raw, rests ? NextUse::kRest : NextUse::kRead, chunks));
    return how.lies_ready ? Status() : finish_numbers(d_, field, how, at, shape, raw, out);
  }

  // Tells `chunks` how far the boxes of a value reach into them.
  void want_boxes(const SampleAsk& ask, const AssembleOutput& output, SharedChunks& chunks) const {
    const ArrayField& field = d_.fields[output.field];
    if (lead_of(field).values) return;
    size_t next = 0;
    boxes_of(ask, field, [&](const ArrayBox& box) {
      if (box.is_missing) return;
      const PieceBytes& piece = output.pieces[next++];
      if (piece.unopened != nullptr) chunks.want(*piece.unopened, box.first_byte, box.span_bytes);
    });
  }

  // The boxes of all variables of the field, each where it belongs in `raw`.
  Status gather_boxes(const SampleAsk& ask, uint32_t f, std::span<const PieceBytes> pieces,
                      const Extents& shape, MutableBytes raw, NextUse next_use,
                      SharedChunks& chunks) const {
    const std::vector<size_t>& begins = numbers_[f].item_begins;
    const auto elements = static_cast<size_t>(elements_in(shape));
    size_t slot = begins[1];  // of the variable whose boxes come
    Extents strides = dense_strides(shape, slot);
    size_t next = 0;
    Status status;
    boxes_of(ask, d_.fields[f], [&](const ArrayBox& box) {
      if (const size_t mine = begins[box.variable + 1] - begins[box.variable]; mine != slot) {
        slot = mine;
        strides = dense_strides(shape, slot);
      }
      const size_t item = size_of(box.array->dtype);
      Strided to{raw.data() + elements * begins[box.variable], strides};
      for (size_t a = 0; a < shape.size(); ++a) to.at += box.to[a] * strides[a];
      const Bytes literal = box.array->literal;
      if (box.is_missing && literal.empty()) return fill_box(fill_of(*box.array), to, box.size);
      const PieceBytes piece = box.is_missing ? PieceBytes{literal} : pieces[next++];
      if (!status.ok()) return;
      if (piece.unopened != nullptr)
        status = open_box(box, piece, to, item, next_use, chunks);
      else if (piece.bytes.size() < box.first_byte + box.span_bytes)
        status = corrupt("a chunk is shorter than its shape says");
      else if (status = check_plain(box, piece.bytes); status.ok())
        copy_box({piece.bytes.data() + box.first_byte, box.strides}, to, box.size, item);
    });
    return status;
  }

  // A stored member that was read as a whole.
  Status check_plain(const ArrayBox& box, Bytes bytes) const {
    if (!box.array->sum || box.is_missing || !box.array->filters.empty()) return {};
    if (box.stored != box.place->stored) return {};
    const Status s = check_sum(*box.array, bytes.first(box.stored));
    return s.ok() ? s : s.at(box.offset).in_file(d_.files[box.place->file]);
  }

  // Opens what the box takes of its chunk: in its place where it lies there as in the chunk, and no
  // other box of the sample takes of it.
  Status open_box(const ArrayBox& box, const PieceBytes& piece, const Strided& to, size_t item,
                  NextUse next_use, SharedChunks& chunks) const {
    const Unit& unit = *piece.unopened;
    if (unit.encoding == 0 || unit.encoding > chains_.size())
      return internal("no such chain of filters");
    const Chain& chain = chains_[unit.encoding - 1];
    const auto undo = [&](uint64_t begin, MutableBytes into, NextUse use) {
      count_opening();
      return undo_filters_in_part(chain.filters, chain.skipped, piece.bytes, unit.decoded_bytes,
                                  begin, into, use);
    };
    HEADRACE_ASSIGN(const std::optional<SharedChunks::Part> shared,
                    chunks.open(unit, [&](uint64_t begin, MutableBytes into) {
                      return undo(begin, into, NextUse::kRead);
                    }));
    if (shared) {
      copy_box({shared->bytes.data() + (box.first_byte - shared->begin), box.strides}, to, box.size,
               item);
      return {};
    }
    const bool in_place = lies_alike(box, to.strides, item);
    MutableBytes into{to.at, box.span_bytes};
    if (!in_place) {
      scratch(1).resize(box.span_bytes);
      into = scratch(1).span();
    }
    HEADRACE_TRY(undo(box.first_byte, into, in_place ? next_use : NextUse::kRead));
    if (!in_place) copy_box({into.data(), box.strides}, to, box.size, item);
    return {};
  }

  void count_opening() const {
    if (d_.openings) d_.openings->fetch_add(1, std::memory_order_relaxed);
  }

  uint64_t positions() const {
    const ArraySamples& s = d_.samples;
    if (!s.starts.empty()) return s.starts.size();
    return s.end <= 0 ? 0 : static_cast<uint64_t>((s.end - 1) / s.stride + 1);
  }
  int64_t position(uint64_t number) const {
    const ArraySamples& s = d_.samples;
    return s.starts.empty() ? static_cast<int64_t>(number) * s.stride : s.starts[number];
  }
  uint64_t tile_count() const {
    return tiles_.empty() ? 1 : static_cast<uint64_t>(elements_in(tiles_));
  }

  void boxes_of(const SampleAsk& ask, const ArrayField& field,
                const std::function<void(const ArrayBox&)>& visit) const {
    const uint64_t tiles = tile_count();
    const Spot spot{ask.sample / tiles, position(ask.sample / tiles), ask.sample % tiles};
    visit_boxes(d_, field, spot, tiles_, ask.draws, visit);
  }

  // Only chunks that open as a whole are looked for: fields share them.
  static uint32_t add_unit(const Unit& unit, Request& out) {
    if (unit.encoding != 0) {
      const auto known = std::find(out.units.begin(), out.units.end(), unit);
      if (known != out.units.end()) return static_cast<uint32_t>(known - out.units.begin());
    }
    out.units.push_back(unit);
    return static_cast<uint32_t>(out.units.size() - 1);
  }

  Unit unit_of(const ArrayBox& box) const {
    Unit unit{.file = box.place->file, .offset = box.offset, .stored_bytes = box.stored};
    unit.decoded_bytes = box.stored;
    if (box.array->filters.empty()) return unit;
    unit.encoding = opening_of(*box.array, box.place->skipped);
    unit.decoded_bytes = chunk_bytes(*box.array);
    return unit;
  }

  uint32_t opening_of(const Array& array, uint32_t skipped) const {
    const auto it = std::find(chains_.begin(), chains_.end(), Chain{array.filters, skipped});
    return static_cast<uint32_t>(it - chains_.begin()) + 1;
  }

  void find_chains() {
    const auto note = [this](Chain chain) {
      if (std::find(chains_.begin(), chains_.end(), chain) == chains_.end())
        chains_.push_back(std::move(chain));
    };
    for (const Variable& variable : d_.variables)
      for (const auto& array : variable.segments) {
        if (array->filters.empty()) continue;
        if (array->sum && array->places.size() == 1)
          summed_[{array->places[0].file, array->places[0].offset}] = array.get();
        note({array->filters, 0});
        for (const ChunkPlace& place : array->places)
          if (place.skipped != 0) note({array->filters, place.skipped});
      }
  }

  const ArrayDescription d_;
  const std::shared_ptr<const Store> store_;
  Schema schema_;
  Extents tiles_;  // how many patches stand side by side on each patched axis; empty: one
  Blocks blocks_;
  Hash128 fingerprint_;
  std::vector<Chain> chains_;
  std::vector<ArrayRows> rows_;                                   // of each field
  std::vector<FieldNumbers> numbers_;                             // of each field
  std::map<std::pair<uint32_t, uint64_t>, const Array*> summed_;  // by file and offset of the chunk
  std::vector<bool> is_unshared_;  // of each variable: its chunks are opened where they are used
};

}  // namespace

Result<std::shared_ptr<const Source>> make_array_source(ArrayDescription description,
                                                        std::shared_ptr<const Store> store) {
  if (description.fields.empty()) return invalid("no field is asked for");
  if (description.samples.stride < 1) return invalid("stride must be at least 1");
  auto source = std::make_shared<ArraySource>(std::move(description), std::move(store));
  HEADRACE_TRY(source->prepare());
  return std::shared_ptr<const Source>(std::move(source));
}

}  // namespace headrace
