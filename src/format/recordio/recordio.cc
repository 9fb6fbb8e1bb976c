// SPDX-License-Identifier: Apache-2.0
//
// MXNet's RecordIO (.rec), as im2rec writes it; beside it an .idx or not.
//
//   part:    | u32 magic | u32 kind << 29 | n | n bytes | zeros to a multiple of 4 |
//   record:  one part (kind 0), or first, middle, last (1, 2, 3): a payload that holds the magic
//            at a multiple of 4 is cut there, and the magic left out
//   data:    | u32 flag | f32 label | u64 id | u64 id2 | flag x f32 labels | payload |
//   .idx:    "<id>\t<offset of the record>\n" for each
//
// Little-endian.  There is no checksum and no end mark; where there is an .idx, it must name all
// records of the file and nothing else.
//
//   payload   `jpg`, `png`, `webp` or `data`, by the first bytes of the shard's first payload
//   label     a float in the index where every record has one; else an array of float32

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "format/header_window.h"
#include "format/recordio/frame.h"
#include "format/records.h"
#include "format/registry.h"
#include "index/part_builder.h"

namespace headrace {

extern const Format recordio_format;

namespace {

constexpr std::string_view kSuffixes[] = {".rec"};
constexpr std::string_view kOnly[] = {"data", "label"};
constexpr std::string_view kIndexSuffix = ".idx";
constexpr uint32_t kJoin = 1;          // the encoding of a record in several parts
constexpr uint64_t kPictureHead = 12;  // bytes that tell what a payload is

struct PartHeader {
  RecordPart kind = RecordPart::kWhole;
  uint64_t length = 0;
};

Status parse_part(Bytes head, PartHeader& out) {
  if (load_le<uint32_t>(head) != kRecordioMagic)
    return corrupt(fmt::format("no record begins here: {:08x} where the magic {:08x} belongs",
                               load_le<uint32_t>(head), kRecordioMagic));
  const auto packed = load_le<uint32_t>(head.subspan(4));
  if (packed >> 29 > 3) return corrupt(fmt::format("no kind of part: {}", packed >> 29));
  out = {static_cast<RecordPart>(packed >> 29), packed & kRecordioMaxLength};
  return {};
}

// A first or whole part begins a record; the others go on with one.
Status check_turn(RecordPart kind, bool begins) {
  const bool can_begin = kind == RecordPart::kWhole || kind == RecordPart::kFirst;
  if (can_begin == begins) return {};
  return corrupt(begins ? "a record begins with its middle or its end"
                        : "a record begins before the one at hand has its last part");
}

bool is_last(RecordPart kind) {
  return kind == RecordPart::kWhole || kind == RecordPart::kLast;
}

std::string_view name_of_payload(Bytes head) {
  const std::string_view text = as_text(head);
  if (text.starts_with("\xff\xd8\xff")) return "jpg";
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return "png";
  if (text.starts_with("RIFF") && text.substr(0, kPictureHead).ends_with("WEBP")) return "webp";
  return "data";
}

// Walks the records once.  One thread at a time.
class RecordioIndexer {
 public:
  // `lists`: some record has several labels.  Where that is found out on the way, the part is
  // worth nothing.
  RecordioIndexer(const ShardInput& shard, bool lists)
      : shard_(shard),
        lists_(lists),
        window_(shard, HeaderWindow::kInOrder),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "recordio",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = true,
                       .align = 4,
                       .gap = kRecordioHead + kImageHeader}) {
    Field label{
        .name = "label", .kind = Kind::kFloat, .storage = Storage::kInline, .dtype = DType::kF32};
    if (lists)
      label = {.name = "label", .kind = Kind::kArray, .dtype = DType::kF32, .shape = {kVaries}};
    label_ = part_.field(label);
  }

  Result<PartPointer> run() {
    Status status = walk();
    if (status.ok()) status = check_index();
    if (!status.ok())
      return after_last_good(status, shard_.info.path, part_.samples(),
                             part_.samples() == 0 ? "" : keys_.at(part_.samples() - 1));
    return part_.finish();
  }
  bool found_lists() const { return found_lists_; }

 private:
  Status walk() {
    for (uint64_t at = 0; at < size();) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      const uint64_t begin = at;
      PartHeader first;
      HEADRACE_TRY(take_part(at, true, first));
      for (PartHeader part = first; !is_last(part.kind);) HEADRACE_TRY(take_part(at, false, part));
      const Status status =
          first.kind == RecordPart::kWhole ? whole(begin, first.length) : joined(begin, at - begin);
      if (!status.ok()) return status.at(begin);
      starts_.push_back(begin);
      part_.end_sample(keys_.at(part_.samples()));
    }
    return {};
  }

  // Checked without adding more than a part can have: moves `at` behind it.
  Status take_part(uint64_t& at, bool begins, PartHeader& out) {
    const uint64_t room = size() - at;
    if (room < kRecordioHead)
      return corrupt(begins ? "the file ends within the head of a record"
                            : "the file ends before the record has its last part")
          .at(at);
    Bytes head;
    HEADRACE_TRY(window_.bytes(at, kRecordioHead, head));
    Status status = parse_part(head, out);
    if (status.ok()) status = check_turn(out.kind, begins);
    if (!status.ok()) return status.at(at);
    if (recordio_padded(out.length) > room - kRecordioHead)
      return corrupt(fmt::format("the record is cut short: {} bytes are wanted, {} are there",
                                 recordio_padded(out.length), room - kRecordioHead))
          .at(at);
    at += kRecordioHead + recordio_padded(out.length);
    return {};
  }

  Status whole(uint64_t at, uint64_t length) {
    const uint64_t data = at + kRecordioHead;
    Bytes head;
    HEADRACE_TRY(window_.bytes(data, std::min(length, kImageHeader), head));
    uint64_t labels = 0;
    HEADRACE_TRY(header(head, length, labels));
    const auto label = load_le<float>(head.subspan(4));
    const uint64_t payload = kImageHeader + 4 * labels;
    if (!lists_ && labels == 0)
      part_.add_float(label_, static_cast<double>(label));
    else if (labels == 0)
      part_.add_extent(label_, {.offset = data + 4, .stored = 4});
    else
      add_labels({.offset = data + kImageHeader, .stored = 4 * labels});
    Bytes begin;
    if (part_.samples() == 0)
      HEADRACE_TRY(window_.bytes(data + payload, std::min(length - payload, kPictureHead), begin));
    part_.add_extent(payload_field(begin), {.offset = data + payload, .stored = length - payload});
    return {};
  }

  // A record in several parts is one unit, which opens as a whole.
  Status joined(uint64_t at, uint64_t stored) {
    Bytes parts;
    HEADRACE_TRY(window_.bytes(at, stored, parts));
    HEADRACE_TRY(join_record(parts, joined_));
    const Bytes data = joined_.bytes();
    uint64_t labels = 0;
    HEADRACE_TRY(
        header(data.first(std::min<uint64_t>(data.size(), kImageHeader)), data.size(), labels));
    const auto piece = [&](uint64_t begin, uint64_t length) {
      return PartValue{.offset = at,
                       .stored = stored,
                       .decoded = data.size(),
                       .begin = begin,
                       .length = length,
                       .encoding = kJoin};
    };
    if (!lists_ && labels == 0)
      part_.add_float(label_, static_cast<double>(load_le<float>(data.subspan(4))));
    else if (labels == 0)
      part_.add_extent(label_, piece(4, 4));
    else
      add_labels(piece(kImageHeader, 4 * labels));
    const uint64_t payload = kImageHeader + 4 * labels;
    part_.add_extent(payload_field(data.subspan(payload)), piece(payload, data.size() - payload));
    return {};
  }

  static Status header(Bytes head, uint64_t length, uint64_t& labels) {
    if (head.size() < kImageHeader)
      return corrupt(fmt::format(
          "the record has {} bytes, too few for the header of 24 that MXNet's records have",
          length));
    labels = load_le<uint32_t>(head);
    if (labels > (length - kImageHeader) / 4)
      return corrupt(fmt::format("{} labels do not fit into a record of {} bytes", labels, length));
    return {};
  }

  void add_labels(const PartValue& value) {
    if (lists_)
      part_.add_extent(label_, value);
    else
      found_lists_ = true;
  }

  // Of the shard: its first payload tells.
  uint32_t payload_field(Bytes begin) {
    if (part_.samples() == 0) payload_ = part_.field(name_of_payload(begin));
    return payload_;
  }

  Status check_index() const {
    const std::string path = companion_path(recordio_format, shard_.info.path);
    if (!shard_.store.stat(path).ok()) return {};
    HEADRACE_ASSIGN(const Buffer bytes, shard_.store.read_all(path));
    std::vector<uint64_t> named;
    std::string_view rest = as_text(bytes.bytes());
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const std::string_view number = line.substr(std::min(line.find('\t'), line.size() - 1) + 1);
      uint64_t offset = 0;
      const auto [end, error] =
          std::from_chars(number.data(), number.data() + number.size(), offset);
      if (error != std::errc() || end == number.data())
        return corrupt(fmt::format("line {} of {} is no id and offset", named.size() + 1, path));
      named.push_back(offset);
    }
    std::sort(named.begin(), named.end());
    const auto differ = std::mismatch(starts_.begin(), starts_.end(), named.begin(), named.end());
    if (differ.first == starts_.end() && differ.second == named.end()) return {};
    const uint64_t at = differ.first != starts_.end() ? *differ.first : size();
    return corrupt(
               fmt::format("{} names {} records and the file has {}, which differ from here on: "
                           "the file is not complete, or the .idx of another one; make it again "
                           "or remove it",
                           path, named.size(), starts_.size()))
        .at(at);
  }

  uint64_t size() const { return shard_.info.bytes; }

  const ShardInput& shard_;
  const bool lists_;
  HeaderWindow window_;
  NumberedKeys keys_;
  PartBuilder part_;
  uint32_t label_ = 0;
  uint32_t payload_ = 0;
  bool found_lists_ = false;
  std::vector<uint64_t> starts_;  // of all records: 8 bytes each while indexing
  Buffer joined_;
};

Result<PartPointer> index(const ShardInput& shard) {
  RecordioIndexer numbers(shard, false);
  Result<PartPointer> part = numbers.run();
  if (!part.ok() || !numbers.found_lists()) return part;
  return RecordioIndexer(shard, true).run();
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  HEADRACE_TRY(join_record(stored, decoded));
  if (decoded.size() != unit.decoded_bytes) return not_as_indexed("record").at(0);
  return {};
}

bool sniff(Bytes head) {
  PartHeader part;
  return head.size() >= kRecordioHead && parse_part(head, part).ok() &&
         check_turn(part.kind, true).ok();
}

}  // namespace

Status join_record(Bytes stored, Buffer& out) {
  out.resize(stored.size());  // more than it will be: every part has a head
  uint64_t used = 0;
  PartHeader part;
  for (uint64_t at = 0; at == 0 || !is_last(part.kind);) {
    const uint64_t room = stored.size() - at;
    if (room < kRecordioHead) return corrupt("a record without its last part").at(at);
    Status status = parse_part(stored.subspan(at), part);
    if (status.ok()) status = check_turn(part.kind, at == 0);
    if (!status.ok()) return status.at(at);
    if (recordio_padded(part.length) > room - kRecordioHead)
      return corrupt("a part of the record is cut short").at(at);
    if (!is_last(part.kind) && part.length % 4 != 0)
      return corrupt(fmt::format("a part of {} bytes that is not the last", part.length)).at(at);
    if (at > 0) {
      store_le(out.span().subspan(used), kRecordioMagic);
      used += sizeof kRecordioMagic;
    }
    if (part.length > 0)
      std::memcpy(out.data() + used, stored.data() + at + kRecordioHead, part.length);
    used += part.length;
    at += kRecordioHead + recordio_padded(part.length);
  }
  out.resize(used);
  return {};
}

extern constinit const Format recordio_format{
    .name = "recordio",
    .doc =
        "MXNet's .rec, with or without .idx: one payload (`jpg`, `png`, `webp`, else `data`) and "
        "its `label`",
    .suffixes = kSuffixes,
    .companion = kIndexSuffix,
    .only = kOnly,
    .has_end = false,
    .guards_lengths = false,
    .sniff = sniff,
    .index = index,
    .create = make_recordio_writer,
    .can_hold = recordio_can_hold,
    .decode_unit = decode_unit,
};

}  // namespace headrace
