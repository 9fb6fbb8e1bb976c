// SPDX-License-Identifier: Apache-2.0
#include "index/part.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "index/names.h"
#include "index/part_frame.h"

namespace headrace {
namespace {

constexpr uint64_t kFirstRead = uint64_t{64} << 10;  // holds the head of 300,000 samples

Status check_frame(const PartFrame& frame, uint64_t length) {
  if (frame.magic != kPartMagic) return corrupt("not a headrace index: wrong magic");
  if (frame.version != kPartVersion)
    return unsupported(
        fmt::format("index version {}, this build reads {}: index the data set again",
                    frame.version, kPartVersion));
  if (frame.total_bytes != length || frame.head_bytes < sizeof(PartFrame) ||
      frame.head_bytes > length)
    return corrupt("the index is cut short or too long");
  return {};
}

}  // namespace

Status Part::parse_head(Bytes head) {
  const auto frame = load_le<PartFrame>(head);
  if (crc32c(head.subspan(kCheckedFrom)) != frame.crc)
    return corrupt("bad checksum of the index' head");
  uint64_t taken = 0;
  HEADRACE_ASSIGN(head_, take_head(head.subspan(sizeof(PartFrame)), taken));
  head_bytes_ = frame.head_bytes;
  total_bytes_ = frame.total_bytes;
  checksum_ = frame.crc;
  directory_at_ = sizeof(PartFrame) + taken;
  // Divided, not multiplied: the counts are from the file.
  const uint64_t room = (head_bytes_ - directory_at_) / kEntryBytes;
  if (groups() > room || path_groups() > room ||
      directory_size() * kEntryBytes != head_bytes_ - directory_at_)
    return corrupt("the directory of the index has another size than its counts");
  return check_directory();
}

Status Part::check_directory() const {
  for (uint64_t at = 0; at < directory_size(); ++at)
    if (group_offset(at) > group_offset(at + 1))
      return corrupt("the directory of the index is out of order");
  return {};
}

// From the end of the head; of one past the last: where the groups end.
uint64_t Part::group_offset(uint64_t at) const {
  if (at == directory_size()) return total_bytes_ - head_bytes_;
  return load_le<uint64_t>(memory_.bytes().subspan(directory_at_ + at * kEntryBytes));
}

Result<PartPointer> Part::parse(Buffer bytes) {
  if (bytes.size() < sizeof(PartFrame)) return corrupt("the index is cut short");
  const auto frame = load_le<PartFrame>(bytes.bytes());
  HEADRACE_TRY(check_frame(frame, bytes.size()));
  std::shared_ptr<Part> part(new Part);
  part->memory_ = std::move(bytes);
  HEADRACE_TRY(part->parse_head(part->memory_.bytes().first(frame.head_bytes)));
  for (uint64_t at = 0; at < part->directory_size(); ++at) {
    const uint64_t begin = part->group_offset(at);
    const Bytes group = part->memory_.bytes().subspan(part->head_bytes_ + begin,
                                                      part->group_offset(at + 1) - begin);
    const Bytes entry = part->memory_.bytes().subspan(part->directory_at_ + at * kEntryBytes);
    if (crc32c(group) != load_le<uint32_t>(entry.subspan(8)))
      return corrupt("bad checksum in the index");
  }
  return PartPointer(std::move(part));
}

Result<PartPointer> Part::open(std::shared_ptr<const Store> store, std::string path, uint64_t base,
                               uint64_t length) {
  if (length < sizeof(PartFrame)) return corrupt("the index is cut short").in_file(path);
  std::shared_ptr<Part> part(new Part);
  HEADRACE_TRY(store->read_at(path, base, std::min(length, kFirstRead), part->memory_));
  const auto frame = load_le<PartFrame>(part->memory_.bytes());
  if (Status s = check_frame(frame, length); !s.ok()) return s.in_file(path);
  if (frame.head_bytes > part->memory_.size())
    HEADRACE_TRY(store->read_at(path, base, frame.head_bytes, part->memory_));
  Buffer head(frame.head_bytes);  // exactly: what was read beyond it is not kept
  std::copy_n(part->memory_.data(), head.size(), head.data());
  part->memory_ = std::move(head);
  if (Status s = part->parse_head(part->memory_.bytes()); !s.ok()) return s.in_file(path);
  part->store_ = std::move(store);
  part->path_ = std::move(path);
  part->base_ = base;
  return PartPointer(std::move(part));
}

Status Part::group_bytes(uint64_t at, Buffer& scratch, Bytes& out) const {
  const uint64_t begin = group_offset(at);
  const uint64_t length = group_offset(at + 1) - begin;
  if (store_ == nullptr) {
    out = memory_.bytes().subspan(head_bytes_ + begin, length);
    return {};
  }
  HEADRACE_TRY(store_->read_at(path_, base_ + head_bytes_ + begin, length, scratch));
  out = scratch.bytes();
  const Bytes entry = memory_.bytes().subspan(directory_at_ + at * kEntryBytes);
  if (crc32c(out) == load_le<uint32_t>(entry.subspan(8))) return {};
  return corrupt("bad checksum in the index").at(base_ + head_bytes_ + begin).in_file(path_);
}

Status Part::unpack(uint64_t group, PartGroup& out) const {
  if (group >= groups()) return internal("no such group");
  Buffer scratch;
  Bytes bytes;
  HEADRACE_TRY(group_bytes(group, scratch, bytes));
  const uint64_t samples = std::min(kGroupSamples, head_.samples - group * kGroupSamples);
  return unpack_values(head_, samples, bytes, out);
}

Status Part::key(uint64_t sample, std::string& out) const {
  if (sample >= head_.samples) return internal("no such sample");
  if (head_.whole_files && !head_.own_keys) {
    PartGroup group;
    HEADRACE_TRY(unpack(sample / kGroupSamples, group));
    const size_t fields = head_.schema.size();
    for (uint32_t v = group.first[sample % kGroupSamples * fields]; v < group.values.size(); ++v) {
      if (group.values[v].stored != kWholeFile) continue;  // inline
      HEADRACE_TRY(path(group.values[v].file, out));
      out.resize(split_stem(out).key.size());
      return {};
    }
    return corrupt("a sample of the index has no file");
  }
  Buffer scratch;
  Bytes bytes;
  HEADRACE_TRY(group_bytes(sample / kGroupSamples, scratch, bytes));
  return unpack_key(sample % kGroupSamples, bytes, out);
}

Status Part::path(uint64_t file, std::string& out) const {
  if (file >= head_.files) return internal("no such file in the index");
  Buffer scratch;
  Bytes bytes;
  HEADRACE_TRY(group_bytes(groups() + file / kGroupSamples, scratch, bytes));
  return unpack_text(file % kGroupSamples, bytes, out);
}

Status Part::keys(uint64_t group, std::vector<std::string>& out) const {
  if (group >= groups()) return internal("no such group");
  if (head_.whole_files && !head_.own_keys) return file_keys(group, out);
  Buffer scratch;
  Bytes bytes;
  HEADRACE_TRY(group_bytes(group, scratch, bytes));
  return unpack_keys(std::min(kGroupSamples, head_.samples - group * kGroupSamples), bytes, out);
}

// A sample's key is that of its first file; files of neighbours are neighbours.
Status Part::file_keys(uint64_t group, std::vector<std::string>& out) const {
  PartGroup unpacked;
  HEADRACE_TRY(unpack(group, unpacked));
  const size_t fields = head_.schema.size();
  std::vector<std::string> paths;
  uint64_t paths_of = ~uint64_t{0};
  out.clear();
  for (uint64_t s = 0; s * fields + 1 < unpacked.first.size(); ++s) {
    uint32_t v = unpacked.first[s * fields];
    while (v < unpacked.values.size() && unpacked.values[v].stored != kWholeFile) ++v;
    if (v == unpacked.values.size()) return corrupt("a sample of the index has no file");
    const uint64_t file = unpacked.values[v].file;
    if (file / kGroupSamples != paths_of) {
      paths_of = file / kGroupSamples;
      Buffer scratch;
      Bytes bytes;
      HEADRACE_TRY(group_bytes(groups() + paths_of, scratch, bytes));
      HEADRACE_TRY(unpack_texts(std::min(kGroupSamples, head_.files - paths_of * kGroupSamples),
                                bytes, paths));
    }
    out.emplace_back(split_stem(paths[file % kGroupSamples]).key);
  }
  return {};
}

}  // namespace headrace
