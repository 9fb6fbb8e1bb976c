// SPDX-License-Identifier: Apache-2.0
#include "index/indexed_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "index/number_lists.h"
#include "storage/paths.h"

namespace headrace {
namespace {

// The number of `unit` in the request.  Only a unit that opens as a whole is looked for:
// several values of a sample may lie in it, and it is fetched once.
uint32_t add_unit(const Unit& unit, Request& out) {
  if (unit.encoding != 0) {
    const auto known = std::find(out.units.begin(), out.units.end(), unit);
    if (known != out.units.end()) return static_cast<uint32_t>(known - out.units.begin());
  }
  out.units.push_back(unit);
  return static_cast<uint32_t>(out.units.size() - 1);
}

void add_inline(const PartGroup& group, const PartValue& value, Request& out) {
  const auto begin = group.inline_bytes.begin() + static_cast<std::ptrdiff_t>(value.offset);
  out.pieces.push_back({kInlineUnit, out.inline_bytes.size(), value.length});
  out.inline_bytes.insert(out.inline_bytes.end(), begin,
                          begin + static_cast<std::ptrdiff_t>(value.length));
}

// A number as a list of one: what the field is in other shards.
void add_list_of_one(const PartGroup& group, const PartValue& value, DType dtype, Request& out) {
  if (dtype != DType::kF32) return add_inline(group, value, out);  // int64, as the index has it
  const auto number =
      static_cast<float>(load_le<double>(Bytes(group.inline_bytes).subspan(value.offset)));
  out.pieces.push_back({kInlineUnit, out.inline_bytes.size(), sizeof(number)});
  out.inline_bytes.resize(out.inline_bytes.size() + sizeof(number));
  store_le(MutableBytes(out.inline_bytes).last(sizeof(number)), number);
}

}  // namespace

IndexedSource::IndexedSource(IndexedParts parts)
    : parts_(std::move(parts)), recent_([] { return std::make_unique<Recent>(); }) {
  for (const PartPointer& part : parts_.parts) all_.push_back(map_fields(part));
}

IndexedSource::LoadedPointer IndexedSource::map_fields(PartPointer part) const {
  auto loaded = std::make_shared<Loaded>();
  const Schema& local = part->head().schema;
  for (const Field& field : parts_.schema) {
    const auto it = std::find_if(local.begin(), local.end(),
                                 [&field](const Field& mine) { return same_values(mine, field); });
    loaded->local_field.push_back(it == local.end() ? kAbsent
                                                    : static_cast<uint32_t>(it - local.begin()));
  }
  loaded->part = std::move(part);
  return loaded;
}

Result<IndexedSource::LoadedPointer> IndexedSource::loaded(size_t shard) const {
  if (!all_.empty()) return all_[shard];
  Recent& recent = *recent_;
  {
    MutexLock lock(recent.mu);
    if (const LoadedPointer* held = recent.parts.find(shard)) return *held;
  }
  HEADRACE_ASSIGN(PartPointer part, parts_.load(shard));
  if (part->head().samples != parts_.shards.samples(shard))
    return corrupt("the part of this shard has another count than the manifest");
  LoadedPointer opened = map_fields(std::move(part));
  LoadedPointer forgotten;
  MutexLock lock(recent.mu);
  forgotten = recent.parts.insert(shard, opened);
  return opened;
}

Status IndexedSource::fill_slot(Slot& slot, size_t shard, uint64_t local) const {
  slot.group = ~uint64_t{0};  // stays so on failure
  HEADRACE_ASSIGN(slot.loaded, loaded(shard));
  HEADRACE_TRY(slot.loaded->part->unpack(local / kGroupSamples, slot.unpacked));
  slot.group = parts_.shards.first_sample(shard) + local / kGroupSamples * kGroupSamples;
  return {};
}

void IndexedSource::take_fields(const Loaded& loaded, const PartGroup& group, uint64_t row,
                                size_t shard, std::span<const uint32_t> fields,
                                Request& out) const {
  const Schema& local = loaded.part->head().schema;
  const auto first_file = static_cast<uint32_t>(parts_.shards.first_file(shard));
  for (const uint32_t field : fields) {
    const uint32_t f = loaded.local_field[field];
    const size_t cell = row * local.size() + f;
    const uint32_t begin = f == kAbsent ? 0 : group.first[cell];
    const uint32_t end = f == kAbsent ? 0 : group.first[cell + 1];
    for (uint32_t v = begin; v < end; ++v) {
      const PartValue& value = group.values[v];
      if (local[f].storage == Storage::kInline) {
        if (parts_.schema[field].kind == Kind::kArray && is_list_of(local[f], parts_.schema[field]))
          add_list_of_one(group, value, *local[f].dtype, out);
        else
          add_inline(group, value, out);
        continue;
      }
      const Unit unit{first_file + value.file, value.encoding, value.offset, value.stored,
                      value.decoded};
      out.pieces.push_back({add_unit(unit, out), value.begin, value.length, value.continues});
    }
    out.first_piece.push_back(static_cast<uint32_t>(out.pieces.size()));
  }
}

Status IndexedSource::needs(const SampleAsk& ask, Request& out) const {
  const uint64_t sample = ask.sample;
  out.clear();
  if (sample >= size()) return invalid(fmt::format("sample {} of {}", sample, size()));
  for (const uint32_t field : ask.fields)
    if (field >= parts_.schema.size()) return internal("no such field");
  const size_t shard = parts_.shards.shard_of_sample(sample);
  const uint64_t local = sample - parts_.shards.first_sample(shard);
  const uint64_t group = sample - local % kGroupSamples;
  {
    Slot& slot = recent_->slots[mix64(group) % kSlots];
    MutexLock lock(slot.mu);
    if (slot.group != group)
      if (Status s = fill_slot(slot, shard, local); !s.ok())
        return s.in_file(parts_.shards.place(shard)).of_sample(sample);
    take_fields(*slot.loaded, slot.unpacked, local % kGroupSamples, shard, ask.fields, out);
  }
  return ask.want_key ? read_key(sample, out.key) : Status();
}

// From the first byte of the block's first sample to the last of its last one: samples lie in
// the order of their bytes.
bool IndexedSource::run_of(uint64_t sample, Unit& run) const {
  std::call_once(blocks_counted_, [this] {
    uint64_t begin = 0;
    for (const uint32_t n : blocks().samples) {
      block_begin_.push_back(begin);
      begin += n;
    }
  });
  if (sample >= size()) return false;
  // The last block that begins at or before the sample: empty ones share their beginning.
  const auto after = std::upper_bound(block_begin_.begin(), block_begin_.end(), sample);
  const auto block = static_cast<size_t>(after - block_begin_.begin()) - 1;
  std::vector<uint32_t> fields(schema().size());
  std::iota(fields.begin(), fields.end(), 0u);
  uint64_t begin = ~uint64_t{0};
  uint64_t end = 0;
  Request request;
  for (const uint64_t edge :
       {block_begin_[block], block_begin_[block] + blocks().samples[block] - 1}) {
    if (!needs({.sample = edge, .fields = fields}, request).ok() || request.units.empty())
      return false;
    for (const Unit& unit : request.units) {
      if (unit.encoding != 0 || unit.stored_bytes == kWholeFile ||
          (end > 0 && unit.file != run.file))
        return false;
      run.file = unit.file;
      begin = std::min(begin, unit.offset);
      end = std::max(end, unit.offset + unit.stored_bytes);
    }
  }
  run = {run.file, 0, begin, end - begin, end - begin};
  return end > begin;
}

Status IndexedSource::decode_unit(const Unit& unit, Bytes stored, Buffer& decoded) const {
  if (parts_.decode_unit == nullptr) return internal("this format has no units to open");
  return parts_.decode_unit(*parts_.store, file_path(unit.file), unit, stored, decoded);
}

std::string IndexedSource::file_path(uint32_t file) const {
  const size_t shard = parts_.shards.shard_of_file(file);
  std::string place(parts_.shards.place(shard));
  if (!parts_.shards.has_files(shard)) return place;
  const Result<LoadedPointer> part = loaded(shard);
  std::string path;
  // A part that cannot be read any more: the root is what is left to name.
  if (!part.ok() || !part.value()->part->path(file - parts_.shards.first_file(shard), path).ok())
    return place;
  return join_path(place, path);
}

Status IndexedSource::read_key(uint64_t sample, std::string& out) const {
  const size_t shard = parts_.shards.shard_of_sample(sample);
  HEADRACE_ASSIGN(const LoadedPointer part, loaded(shard));
  const Status status = part->part->key(sample - parts_.shards.first_sample(shard), out);
  return status.ok() ? status : status.in_file(parts_.shards.place(shard)).of_sample(sample);
}

std::string IndexedSource::key(uint64_t sample) const {
  std::string out;
  if (sample >= size() || !read_key(sample, out).ok()) return {};
  return out;
}

Status IndexedSource::keys(uint64_t begin, uint64_t end, std::vector<std::string>& out) const {
  if (begin > end || end > size()) return internal("no such samples");
  std::vector<std::string> group;
  for (uint64_t at = begin; at < end;) {
    const size_t shard = parts_.shards.shard_of_sample(at);
    HEADRACE_ASSIGN(const LoadedPointer part, loaded(shard));
    const uint64_t local = at - parts_.shards.first_sample(shard);
    const uint64_t row = local % kGroupSamples;
    if (Status s = part->part->keys(local / kGroupSamples, group); !s.ok())
      return s.in_file(parts_.shards.place(shard)).of_sample(at);
    if (row >= group.size()) return internal("a group without its samples");
    const uint64_t n = std::min<uint64_t>(end - at, group.size() - row);
    const auto from = group.begin() + static_cast<std::ptrdiff_t>(row);
    out.insert(out.end(), std::make_move_iterator(from),
               std::make_move_iterator(from + static_cast<std::ptrdiff_t>(n)));
    at += n;
  }
  return {};
}

}  // namespace headrace
