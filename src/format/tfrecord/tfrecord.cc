// SPDX-License-Identifier: Apache-2.0
//
// TFRecord: checksummed records, one after the other, no index and no end mark.
//
//   0        8         12             12+n
//   +--------+---------+--------------+-----------+
//   | u64 n  | crc(n)  | n data bytes | crc(data) |   repeated to the end of the file
//   +--------+---------+--------------+-----------+
//
// Little-endian; crc is masked (tfrecord_frame.h).  Every checksum is verified when the shard is
// indexed, which reads all of it once; after that values are read where they lie.  A file in gzip
// or zlib is one unit, which opens as a whole (tfrecord_bytes.h).
//
// A record that is a tf.train.Example (example.h) is a sample with one field a feature:
//   bytes           one extent a value; pictures, text, JSON by the feature's name
//   int64, float    a number in the index where every record of the shard has at most one;
//                   else an array of int64 or float32, of as many as the record has
//   __key__         the key; else "<file>/<number>"
// Any other record, a SequenceExample too, is the field `data`.

#include <fmt/format.h>

#include <array>
#include <map>
#include <unordered_map>

#include "base/inflate.h"
#include "format/format.h"
#include "format/records.h"
#include "format/tfrecord/bytes.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".tfrecord", ".tfrecords", ".tfrecord.gz",
                                          ".tfrecords.gz"};
constexpr std::string_view kDataField = "data";

// Openings: what makes an array of a list message, or unpacks the file.
constexpr uint32_t kIntList = 1;
constexpr uint32_t kFloatList = 2;
constexpr uint32_t kPacked = 3;
constexpr uint32_t kPackedWithArrays = 4;

// What a first walk over a packed file finds out.
struct Unpacked {
  uint64_t bytes = 0;
  uint64_t arrays = 0;  // bytes of number lists as arrays
};

using ListTypes = std::map<std::string, FeatureType, std::less<>>;

// A feature called "count" that holds bytes is no decimal number.
Kind kind_of_bytes(std::string_view name) {
  const Kind kind = kind_of_extension(name);
  return kind == Kind::kInt ? Kind::kBytes : kind;
}

// Walks the records once.  One thread at a time.
class TfrecordIndexer {
 public:
  // `lists` are the number features of which some record has several values; those that turn
  // out to be such are added, and the part is then worth nothing.  So is that of a packed file
  // while `unpacked` is not known.
  TfrecordIndexer(const ShardInput& shard, FileBytes& bytes, const Unpacked& unpacked,
                  ListTypes& lists)
      : shard_(shard),
        bytes_(bytes),
        packed_(bytes.size() == kUnknownSize),
        unpacked_(unpacked),
        lists_(lists),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "tfrecord",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = true,
                       .gap = packed_ ? 0 : kTfrecordHead + kTfrecordTail}) {}

  Result<PartPointer> run() {
    if (Status s = walk(); !s.ok())
      return after_last_good(s, shard_.info.path, part_.samples(), last_key_);
    if (packed_) {
      HEADRACE_TRY(check_unit_fits(walked_.bytes, Compression::kGzip, shard_.info.path));
      const std::string notice = large_unit_notice(walked_.bytes, Compression::kGzip);
      if (!notice.empty()) part_.head().notices.push_back(notice);
    }
    return part_.finish();
  }
  const Unpacked& walked() const { return walked_; }

 private:
  Status walk() {
    for (uint64_t at = 0;;) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      uint64_t length = 0;
      bool end = false;
      if (Status s = head(at, length, end); !s.ok()) return placed(s, at);
      walked_.bytes = at;
      if (end) return {};
      Bytes data;
      HEADRACE_TRY(bytes_.bytes(at + kTfrecordHead, length + kTfrecordTail, data));
      if (data.size() < length + kTfrecordTail) return placed(cut_short(length, data.size()), at);
      if (masked_crc32c(data.first(length)) != load_le<uint32_t>(data.subspan(length)))
        return placed(
            corrupt(fmt::format("the checksum of the record's {} bytes is wrong", length)),
            at + kTfrecordHead);
      base_ = at + kTfrecordHead;
      if (Status s = record(data.first(length)); !s.ok()) return placed(s, at);
      at += kTfrecordHead + length + kTfrecordTail;
    }
  }

  // An offset in unpacked data is no place in the file.
  Status placed(const Status& status, uint64_t at) const {
    if (!packed_ || status.code() != Code::kCorrupt || status.place().offset >= 0)
      return status.at(at);
    return corrupt(fmt::format("{} (offset {} of the unpacked data)", status.message(), at));
  }

  static Status cut_short(uint64_t length, uint64_t there) {
    return corrupt(
        fmt::format("the record is cut short: {} bytes and a checksum are wanted, "
                    "{} are there",
                    length, there));
  }

  // Compared without adding: the length is from the file.
  Status head(uint64_t at, uint64_t& length, bool& end) {
    Bytes head;
    HEADRACE_TRY(bytes_.bytes(at, kTfrecordHead, head));
    end = head.empty();
    if (end) return {};
    if (head.size() < kTfrecordHead)
      return corrupt(
          fmt::format("the file ends within a record's head, after {} bytes", head.size()));
    length = load_le<uint64_t>(head);
    if (masked_crc32c(head.first(8)) != load_le<uint32_t>(head.subspan(8)))
      return corrupt(at == 0 ? "no TFRecord: the checksum of the first length is wrong"
                             : "the checksum of the record's length is wrong");
    const uint64_t room = bytes_.size() - at - kTfrecordHead;
    if (room < kTfrecordTail || length > room - kTfrecordTail) return cut_short(length, room);
    return {};
  }

  Status record(Bytes data) {
    data_ = data;
    std::string_view key;
    if (parse_example(data, features_)) {
      for (const Feature& feature : features_) {
        if (feature.name == kExampleKey && feature.type == FeatureType::kBytes &&
            feature.count == 1)
          key = as_text(bytes_values(feature).front());
        else
          HEADRACE_TRY(add(feature));
      }
    } else {
      HEADRACE_ASSIGN(Known * known, find(kDataField, FeatureType::kBytes));
      add_extent(known->field, data);
    }
    last_key_ = key.empty() ? std::string_view(keys_.at(part_.samples())) : key;
    part_.end_sample(last_key_);
    return {};
  }

  struct Known {
    FeatureType type;
    bool is_list;
    uint32_t field;
    uint64_t last_record;  // the one it was seen in
  };

  static Field field_of(std::string_view name, const Known& known) {
    Field field{.name = std::string(name)};
    if (known.type == FeatureType::kBytes) {
      field.kind = kind_of_bytes(name);
      return field;
    }
    const bool ints = known.type == FeatureType::kInt64;
    field.dtype = ints ? DType::kI64 : DType::kF32;
    if (known.is_list) {
      field.kind = Kind::kArray;
      field.shape = {kVaries};
    } else {
      field.kind = ints ? Kind::kInt : Kind::kFloat;
      field.storage = Storage::kInline;
    }
    return field;
  }

  Result<Known*> find(std::string_view name, FeatureType type) {
    auto it = known_.find(name);
    if (it == known_.end()) {
      if (known_.size() == kMaxFields)
        return corrupt(fmt::format("more than {} features, the last being '{}'", kMaxFields, name));
      const auto list = lists_.find(name);
      Known known{type, list != lists_.end(), 0, ~uint64_t{0}};
      if (known.is_list) known.type = list->second;
      known.field = part_.field(field_of(name, known));
      it = known_.emplace(name, known).first;
    }
    Known& known = it->second;
    if (type != FeatureType::kNone && known.type != type)
      return corrupt(fmt::format("feature '{}' is {} here and {} in the records before", name,
                                 feature_type_name(type), feature_type_name(known.type)));
    if (known.last_record == part_.samples())
      return corrupt(fmt::format("the record has feature '{}' twice", name));
    known.last_record = part_.samples();
    return &known;
  }

  Status add(const Feature& feature) {
    const uint64_t array = walked_.arrays;
    if (packed_) walked_.arrays += array_bytes(feature);
    // Without a value its type says nothing: writers that do not know it put any.
    const bool empty = feature.count == 0;
    if (empty && !lists_.contains(feature.name)) return {};
    HEADRACE_ASSIGN(const Known* known,
                    find(feature.name, empty ? FeatureType::kNone : feature.type));
    if (empty) return add_extent(known->field, {}), Status();
    if (feature.type == FeatureType::kBytes) {
      for (const Bytes value : bytes_values(feature)) add_extent(known->field, value);
    } else if (known->is_list) {
      add_list(known->field, feature, array);
    } else if (feature.count > 1) {
      lists_.emplace(feature.name, feature.type);
    } else if (feature.type == FeatureType::kInt64) {
      part_.add_int(known->field, first_int(feature));
    } else {
      part_.add_float(known->field, static_cast<double>(first_float(feature)));
    }
    return {};
  }

  // `array`: where its array begins among those of a packed file.
  void add_list(uint32_t field, const Feature& feature, uint64_t array) {
    Bytes run;
    if (feature.type == FeatureType::kFloat && float_run(feature, run))
      return add_extent(field, run);
    const bool ints = feature.type == FeatureType::kInt64;
    if (packed_) return add_piece(field, unpacked_.bytes + array, array_bytes(feature));
    part_.add_extent(field, {.offset = offset_of(feature.list),
                             .stored = feature.list.size(),
                             .decoded = feature.count * (ints ? 8 : 4),
                             .encoding = ints ? kIntList : kFloatList});
  }

  void add_extent(uint32_t field, Bytes value) {
    if (packed_) return add_piece(field, offset_of(value), value.size());
    part_.add_extent(field, {.offset = offset_of(value), .stored = value.size()});
  }

  void add_piece(uint32_t field, uint64_t begin, uint64_t length) {
    const bool arrays = !lists_.empty();
    part_.add_extent(field, {.stored = shard_.info.bytes,
                             .decoded = unpacked_.bytes + (arrays ? unpacked_.arrays : 0),
                             .begin = begin,
                             .length = length,
                             .encoding = arrays ? kPackedWithArrays : kPacked});
  }

  uint64_t offset_of(Bytes value) const {
    if (value.empty()) return base_;
    return base_ + static_cast<uint64_t>(value.data() - data_.data());
  }

  const ShardInput& shard_;
  FileBytes& bytes_;
  const bool packed_;
  const Unpacked unpacked_;
  Unpacked walked_;
  ListTypes& lists_;
  NumberedKeys keys_;
  PartBuilder part_;
  Bytes data_;         // of the record at hand
  uint64_t base_ = 0;  // where it lies in the file
  std::vector<Feature> features_;
  std::unordered_map<std::string, Known, TextHash, std::equal_to<>> known_;
  std::string last_key_;
};

// Whether a feature is a number or a list is known only at the end, and so is the size of what
// was packed: a second walk has them right.
Result<PartPointer> index(const ShardInput& shard) {
  ListTypes lists;
  Unpacked unpacked;
  for (bool again = false;; again = true) {
    HEADRACE_ASSIGN(const std::unique_ptr<FileBytes> bytes, open_record_bytes(shard));
    TfrecordIndexer indexer(shard, *bytes, unpacked, lists);
    Result<PartPointer> part = indexer.run();
    const bool packed = bytes->size() == kUnknownSize;
    if (!part.ok() || again || (lists.empty() && !packed)) return part;
    unpacked = indexer.walked();
  }
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  if (unit.encoding == kPacked || unit.encoding == kPackedWithArrays) {
    // A byte inflates to 1032 at most, and a number of one byte to 8 more.
    if (unit.decoded_bytes / (9 * kMaxInflation) > stored.size())
      return not_as_indexed("file").at(0);
    decoded.resize(unit.decoded_bytes);
    return open_packed_records(stored, unit.encoding == kPackedWithArrays, decoded.span());
  }
  const FeatureType type = unit.encoding == kIntList ? FeatureType::kInt64 : FeatureType::kFloat;
  HEADRACE_TRY(open_number_list(type, stored, decoded));
  if (decoded.size() != unit.decoded_bytes) return not_as_indexed("list of numbers").at(0);
  return {};
}

Result<std::unique_ptr<Writer>> create(ShardOutput out) {
  return make_tfrecord_writer(std::move(out));
}

bool begins_with_record(Bytes head) {
  return head.size() >= kTfrecordHead &&
         masked_crc32c(head.first(8)) == load_le<uint32_t>(head.subspan(8));
}

bool sniff(Bytes head) {
  std::array<std::byte, kTfrecordHead> unpacked;
  return begins_with_record(head) ||
         (is_packed(head) && begins_with_record(unpack_head(head, unpacked)));
}

}  // namespace

extern constinit const Format tfrecord_format{
    .name = "tfrecord",
    .doc =
        "TensorFlow's records: each feature of a tf.train.Example is a field, any other record "
        "is `data`",
    .suffixes = kSuffixes,
    .has_checksum = true,
    .has_end = false,
    .sniff = sniff,
    .index = index,
    .create = create,
    .decode_unit = decode_unit,
};

}  // namespace headrace
