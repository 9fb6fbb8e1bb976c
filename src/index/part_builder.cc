// SPDX-License-Identifier: Apache-2.0
#include "index/part_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "index/part_frame.h"
#include "index/source.h"

namespace headrace {
namespace {

constexpr size_t kMaxShapes = 64;  // beyond, a sample spells its counts out

// The texts' common beginning is not written again.
void put_front_coded(ByteVector& out, std::string& last, std::string_view text) {
  const auto differ = std::mismatch(last.begin(), last.end(), text.begin(), text.end());
  const auto shared = static_cast<size_t>(differ.first - last.begin());
  put_varint(out, shared);
  put_text(out, text.substr(shared));
  last = text;
}

// What a value adds to its block: of a unit that several share, its part.
uint64_t block_bytes(const PartValue& value) {
  if (value.stored == kWholeFile) return kNominalFileBytes;
  if (value.encoding == 0 || value.length >= value.decoded) return value.stored;
  return static_cast<uint64_t>(static_cast<double>(value.stored) *
                               static_cast<double>(value.length) /
                               static_cast<double>(value.decoded));
}

}  // namespace

uint32_t PartBuilder::field(std::string_view name) {
  return field(name, kind_of_extension(name), Storage::kExtent);
}

uint32_t PartBuilder::field(std::string_view name, Kind kind, Storage storage) {
  const auto it = fields_.find(name);
  if (it == fields_.end())
    return field({.name = std::string(name), .kind = kind, .storage = storage});
  const Field& known = head_.schema[it->second];
  if (known.kind != kind || known.storage != storage) two_kinds_ = name;  // said by finish()
  return it->second;
}

uint32_t PartBuilder::field(const Field& field) {
  const auto it = fields_.find(field.name);
  if (it != fields_.end()) {
    if (head_.schema[it->second] != field) two_kinds_ = field.name;
    return it->second;
  }
  if (head_.schema.size() == kMaxFields) {
    too_many_fields_ = true;  // said by finish()
    return 0;
  }
  const auto number = static_cast<uint32_t>(head_.schema.size());
  head_.schema.push_back(field);
  fields_.emplace(field.name, number);
  return number;
}

uint32_t PartBuilder::add_file(std::string_view path) {
  put_front_coded(path_group_, last_path_, path);
  names_.add(path);
  if (++head_.files % kGroupSamples == 0) end_path_group();
  return static_cast<uint32_t>(head_.files - 1);
}

void PartBuilder::add_extent(uint32_t field, const PartValue& value) {
  sample_.push_back({.field = field, .value = value});
}

void PartBuilder::add_whole_file(uint32_t field, uint32_t file) {
  sample_.push_back({.field = field, .value = {.stored = kWholeFile, .file = file}});
}

void PartBuilder::add_int(uint32_t field, int64_t value) {
  sample_.push_back({.field = field, .number = value});
}

void PartBuilder::add_float(uint32_t field, double value) {
  sample_.push_back({.field = field});
  put_le(sample_.back().bytes, value);
}

void PartBuilder::add_bytes(uint32_t field, Bytes value) {
  sample_.push_back({.field = field, .bytes = ByteVector(value.begin(), value.end())});
}

uint32_t PartBuilder::shape_of_sample() {
  std::vector<uint32_t>& counts = rows_.back().counts;
  for (const Pending& pending : sample_) {
    if (counts.size() <= pending.field) counts.resize(pending.field + 1, 0);
    if (counts[pending.field]++ > 0 && !pending.value.continues)
      head_.schema[pending.field].many = true;
  }
  const auto known = std::find(head_.shapes.begin(), head_.shapes.end(), counts);
  if (known == head_.shapes.end()) {
    if (head_.shapes.size() == kMaxShapes) return 0;
    head_.shapes.push_back(counts);
    return static_cast<uint32_t>(head_.shapes.size());
  }
  return static_cast<uint32_t>(known - head_.shapes.begin()) + 1;
}

void PartBuilder::put_range(const PartValue& value) {
  ByteVector& out = rows_.back().values;
  const uint64_t expected = (end_ + head_.align - 1) / head_.align * head_.align + head_.gap;
  put_varint(out, zigzag(static_cast<int64_t>(value.offset - expected)));
  put_varint(out, value.stored);
  end_ = value.offset + value.stored;
}

void PartBuilder::put_value(const Pending& pending) {
  ByteVector& out = rows_.back().values;
  const Field& field = head_.schema[pending.field];
  if (field.storage == Storage::kInline) {
    if (field.kind == Kind::kInt) {
      int64_t& last = last_int_[pending.field];
      put_varint(out, zigzag(static_cast<int64_t>(static_cast<uint64_t>(pending.number) -
                                                  static_cast<uint64_t>(last))));
      last = pending.number;
      return;
    }
    if (field.kind != Kind::kFloat) put_varint(out, pending.bytes.size());
    put_bytes(out, pending.bytes);
    return;
  }
  const PartValue& value = pending.value;
  if (head_.has_files) {
    put_varint(out, zigzag(static_cast<int64_t>(value.file - next_file_)));
    if (value.file + uint64_t{1} != next_file_) end_ = 0;
    next_file_ = value.file + uint64_t{1};
  }
  if (!head_.whole_files) put_range(value);
  if (!head_.has_openings) return;
  put_varint(out, uint64_t{value.encoding} * 2 + (value.continues ? 1 : 0));
  if (value.encoding == 0) return;
  put_varint(out, value.decoded);
  put_varint(out, value.begin);
  put_varint(out, value.length == kWholeFile ? 0 : value.length == kRow ? 1 : value.length + 2);
}

void PartBuilder::begin_shared(uint64_t samples, uint64_t bytes) {
  if (samples == 0) return;
  std::vector<PartBlock>& blocks = head_.blocks;
  if (blocks.empty() || blocks.back().bytes >= kBlockBytes ||
      samples > kMaxBlockSamples - blocks.back().samples)
    blocks.push_back({});
  blocks.back().bytes += bytes;
  shared_left_ = samples;
}

void PartBuilder::count_into_block(uint64_t bytes) {
  std::vector<PartBlock>& blocks = head_.blocks;
  const bool shared = shared_left_ > 0;
  if (blocks.empty() || blocks.back().samples == kMaxBlockSamples ||
      (!shared && blocks.back().bytes >= kBlockBytes))
    blocks.push_back({});
  ++blocks.back().samples;
  if (shared)
    --shared_left_;
  else
    blocks.back().bytes += bytes;
}

void PartBuilder::end_sample(std::string_view key) {
  // By field; within one, as they came.
  for (size_t i = 0; i < sample_.size(); ++i) sample_[i].place = i;
  std::sort(sample_.begin(), sample_.end(), [](const Pending& a, const Pending& b) {
    return a.field != b.field ? a.field < b.field : a.place < b.place;
  });
  last_int_.resize(head_.schema.size(), 0);
  rows_.emplace_back();
  rows_.back().shape = shape_of_sample();
  uint64_t bytes = 0;
  for (const Pending& pending : sample_) {
    put_value(pending);
    bytes += block_bytes(pending.value) + pending.bytes.size();
  }
  sample_.clear();
  if (!head_.whole_files || head_.own_keys) put_front_coded(keys_, last_key_, key);
  count_into_block(bytes);
  ++head_.samples;
  if (rows_.size() == kGroupSamples) end_group();
}

void PartBuilder::put_shape(ByteVector& out, uint32_t shape,
                            const std::vector<uint32_t>& counts) const {
  put_varint(out, shape);
  if (shape != 0) return;
  put_varint(out, counts.size());
  for (const uint32_t count : counts) put_varint(out, count);
}

void PartBuilder::end_group() {
  if (rows_.empty()) return;
  const uint32_t common = rows_.front().shape;
  const bool uniform =
      common != 0 && std::all_of(rows_.begin(), rows_.end(),
                                 [common](const Row& row) { return row.shape == common; });
  ByteVector values;
  put_varint(values, uniform ? common : 0);
  for (const Row& row : rows_) {
    if (!uniform) put_shape(values, row.shape, row.counts);
    put_bytes(values, row.values);
  }
  ByteVector group;
  put_varint(group, values.size());
  put_bytes(group, values);
  put_bytes(group, keys_);
  directory_.push_back({groups_.size(), crc32c(group)});
  put_bytes(groups_, group);
  // Each group stands alone: everything is predicted from zero again.
  rows_.clear();
  keys_.clear();
  last_key_.clear();
  end_ = next_file_ = 0;
  std::fill(last_int_.begin(), last_int_.end(), 0);
}

void PartBuilder::end_path_group() {
  if (path_group_.empty()) return;
  path_directory_.push_back({paths_.size(), crc32c(path_group_)});
  put_bytes(paths_, path_group_);
  path_group_.clear();
  last_path_.clear();
}

Result<PartPointer> PartBuilder::finish() {
  end_group();
  end_path_group();
  if (too_many_fields_)
    return corrupt(
        fmt::format("more than {} fields, the last being '{}': a field is what follows a dot "
                    "of a name",
                    kMaxFields, head_.schema.back().name));
  if (!two_kinds_.empty())
    return corrupt(
        fmt::format("'{}' names both a file of a sample and a value beside it", two_kinds_));
  if (head_.files > 0) head_.names = names_.finish();
  ByteVector head;
  put_le(head, PartFrame{});
  put_head(head_, head);
  for (const Entry& entry : directory_) put_le(head, entry.offset), put_le(head, entry.crc);
  for (const Entry& entry : path_directory_)
    put_le(head, entry.offset + groups_.size()), put_le(head, entry.crc);

  PartFrame frame{.version = kPartVersion, .head_bytes = head.size()};
  frame.total_bytes = head.size() + groups_.size() + paths_.size();
  store_le(MutableBytes(head), frame);
  frame.crc = crc32c(Bytes(head).subspan(kCheckedFrom));
  store_le(MutableBytes(head), frame);

  Buffer all(frame.total_bytes);
  std::byte* at = std::copy(head.begin(), head.end(), all.data());
  at = std::copy(groups_.begin(), groups_.end(), at);
  std::copy(paths_.begin(), paths_.end(), at);
  *this = PartBuilder(PartHead{});
  return Part::parse(std::move(all));
}

}  // namespace headrace
