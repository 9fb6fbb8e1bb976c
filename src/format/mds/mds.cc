// SPDX-License-Identifier: Apache-2.0
//
// MosaicML Streaming's MDS: a folder of shards with an index.json, or one shard by itself
// (mds_shard.h has the layout; mds_index.h the folder; mds_writer.cc writes).
//
//   int, intN, uintN, floatN     a number in the index, with its width
//   str, json, jpeg, png         text, JSON, pictures, where they lie
//   bytes                        by the column's name, as in a tar
//   str_float                    a number in the index; str_int: digits; str_decimal: text
//   ndarray:type:shape           an array, where it lies
//   ndarray, ndarray:type, pil   .npy bytes, made when the value is read
//   list[jpeg], jpeg_array, …    as many values as the list has
//   __key__ (str)                the key; else "<file>/<number>"
//
// A shard in zstd or gzip is one unit.  It opens to the shard as it was and, behind it, the .npy
// bytes of its arrays, in the order of samples and columns.

#include <fmt/format.h>

#include <charconv>

#include "base/inflate.h"
#include "base/zstd.h"
#include "format/folder_index.h"
#include "format/header_window.h"
#include "format/mds/index.h"
#include "format/mds/shard.h"
#include "format/records.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

constexpr std::string_view kSuffixes[] = {".mds", ".mds.zstd", ".mds.gz"};
constexpr uint32_t kZippedShard = kAfterArrays;
constexpr uint64_t kMostShard = uint64_t{1} << 32;  // what offsets of 32 bits can name
constexpr uint32_t kZstdMagic = 0xfd2fb528;

// Calls `take(value)` for each value of an opened shard that becomes .npy, in order.
template <typename Take>
Status each_converted(const MdsShard& shard, const Take& take) {
  std::vector<Extent> places;
  std::vector<ColumnValue> values;
  for (uint64_t s = 0; s < shard.samples(); ++s) {
    HEADRACE_TRY(shard.locate(s, places));
    for (size_t c = 0; c < places.size(); ++c) {
      if (shard.columns()[c].encoding == 0) continue;
      HEADRACE_TRY(column_values(shard.columns()[c], places[c], shard.read(), values));
      for (const ColumnValue& value : values) take(value);
    }
  }
  return {};
}

// `raw` is the shard as it was; `opened` becomes that and its arrays as .npy.
Status open_with_arrays(Buffer raw, Buffer& opened) {
  HEADRACE_ASSIGN(const MdsShard shard, MdsShard::open(raw.size(), reads_from(raw.bytes())));
  uint64_t total = raw.size();
  HEADRACE_TRY(each_converted(shard, [&total](const ColumnValue& value) {
    total += npy_bytes(value.array, value.place.length);
  }));
  if (total == raw.size()) {
    opened = std::move(raw);
    return {};
  }
  opened.resize(total);
  std::copy_n(raw.data(), raw.size(), opened.data());
  uint64_t at = raw.size();
  return each_converted(shard, [&](const ColumnValue& value) {
    const uint64_t bytes = npy_bytes(value.array, value.place.length);
    make_npy(value.array, raw.bytes().subspan(value.place.begin, value.place.length),
             opened.span().subspan(at, bytes));
    at += bytes;
  });
}

// By its first bytes; to exactly so many.
Status unzip_shard(Bytes stored, uint64_t raw_bytes, Buffer& raw) {
  if (!is_gzip(stored)) return zstd_open(stored, raw_bytes, raw);
  if (raw_bytes / kMaxInflation > stored.size())
    return corrupt(fmt::format("{} bytes of gzip do not become {}", stored.size(), raw_bytes));
  raw.resize(raw_bytes);
  return inflate_whole(stored, raw.span());
}

// What it says it unpacks to; nothing where it does not say.
std::optional<uint64_t> stated_bytes(Bytes stored) {
  if (!is_gzip(stored)) return zstd_stated_bytes(stored);
  if (stored.size() < 4) return std::nullopt;
  return load_le<uint32_t>(stored.last(4));  // a shard has less than 4 GiB
}

// As Python writes a float: "0.1", "1e-07", "nan", "-inf".
Status parse_digits(std::string_view text, Number& out) {
  out.is_float = true;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out.real);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    return corrupt(fmt::format("'{}' is no number", text.substr(0, 40)));
  return {};
}

// Walks one shard.  One thread at a time.
class MdsIndexer {
 public:
  explicit MdsIndexer(const ShardInput& shard)
      : input_(shard),
        window_(shard),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "mds",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = true}) {}

  Result<PartPointer> run() {
    Status status = open();
    if (status.ok()) status = walk();
    if (!status.ok()) return after_last_good(status, input_.info.path, part_.samples(), last_key_);
    return part_.finish();
  }

 private:
  Status open() {
    HEADRACE_ASSIGN(const std::shared_ptr<const MdsIndex> index,
                    mds_index_beside(input_.store, input_.info.path));
    const MdsIndexShard* entry =
        index == nullptr ? nullptr : index->find(base_name(input_.info.path));
    HEADRACE_TRY(find_zipped());
    raw_bytes_ = input_.info.bytes;
    if (is_zipped_) HEADRACE_TRY(unzip(entry));
    if (entry != nullptr && entry->raw_bytes != raw_bytes_)
      return corrupt(fmt::format("{} says that the shard has {} bytes, and it has {}", kFolderIndex,
                                 entry->raw_bytes, raw_bytes_));
    HEADRACE_ASSIGN(shard_, MdsShard::open(raw_bytes_, reader()));
    if (entry != nullptr && entry->samples != shard_.samples())
      return corrupt(fmt::format("{} says that the shard has {} samples, its own head says {}",
                                 kFolderIndex, entry->samples, shard_.samples()))
          .at(0);
    for (const StoredColumn& column : shard_.columns())
      fields_.push_back(column.is_key ? 0 : part_.field(column.field));
    converted_at_ = raw_bytes_;
    return {};
  }

  Status find_zipped() {
    if (input_.info.bytes < 4) return {};
    Bytes magic;
    HEADRACE_TRY(window_.bytes(0, 4, magic));
    // A raw shard begins with its count of samples, which may look like gzip.
    is_zipped_ = load_le<uint32_t>(magic) == kZstdMagic ||
                 (is_gzip(magic) && input_.info.path.ends_with(".gz"));
    return {};
  }

  Status unzip(const MdsIndexShard* entry) {
    if (entry == nullptr)
      return unsupported(
          "a compressed shard is read only beside the index.json that names it and says how large "
          "it is");
    if (entry->zip_bytes != input_.info.bytes)
      return corrupt(fmt::format("{} says that the compressed shard has {} bytes, and it has {}",
                                 kFolderIndex, entry->zip_bytes, input_.info.bytes));
    if (entry->raw_bytes > kMostShard)
      return corrupt(fmt::format("{} says that the shard has {} bytes; MDS holds 4 GiB",
                                 kFolderIndex, entry->raw_bytes));
    HEADRACE_ASSIGN(const Buffer stored, input_.store.read_all(input_.info.path));
    Buffer raw;
    HEADRACE_TRY(unzip_shard(stored.bytes(), entry->raw_bytes, raw));
    raw_bytes_ = raw.size();
    return open_with_arrays(std::move(raw), opened_);
  }

  ReadBytes reader() {
    if (is_zipped_) return reads_from(opened_.bytes());
    return [this](uint64_t offset, uint64_t length, Bytes& out) -> Status {
      if (offset > raw_bytes_ || length > raw_bytes_ - offset)
        return corrupt("a value runs past the end of the shard").at(offset);
      return window_.bytes(offset, length, out);
    };
  }

  Status walk() {
    for (uint64_t s = 0; s < shard_.samples(); ++s) {
      if (input_.cancelled()) return cancelled("indexing was cancelled");
      if (Status status = sample(s); !status.ok()) return status.at(shard_.sample(s).begin);
    }
    return {};
  }

  Status sample(uint64_t s) {
    std::string key;
    HEADRACE_TRY(shard_.locate(s, places_));
    for (size_t c = 0; c < places_.size(); ++c) {
      const StoredColumn& column = shard_.columns()[c];
      if (column.is_key) {
        Bytes text;
        HEADRACE_TRY(shard_.read()(places_[c].begin, places_[c].length, text));
        key = as_text(text);
      } else if (column.reading == Reading::kNumber || column.reading == Reading::kDigits) {
        HEADRACE_TRY(number(column, fields_[c], places_[c]));
      } else {
        HEADRACE_TRY(column_values(column, places_[c], shard_.read(), values_));
        for (const ColumnValue& value : values_) part_.add_extent(fields_[c], place(column, value));
      }
    }
    last_key_ = key.empty() ? keys_.at(s) : key;
    part_.end_sample(last_key_);
    return {};
  }

  Status number(const StoredColumn& column, uint32_t field, Extent at) {
    Bytes bytes;
    HEADRACE_TRY(shard_.read()(at.begin, at.length, bytes));
    Number number;
    if (Status s = column.reading == Reading::kDigits ? parse_digits(as_text(bytes), number)
                                                      : load_number(column.dtype, bytes, number);
        !s.ok())
      return s.with(fmt::format("column '{}'", column.field.name));
    if (number.is_float)
      part_.add_float(field, number.real);
    else
      part_.add_int(field, number.whole);
    return {};
  }

  PartValue place(const StoredColumn& column, const ColumnValue& value) {
    const auto [begin, length] = value.place;
    const uint64_t converted = value.converts ? npy_bytes(value.array, length) : 0;
    if (!is_zipped_ && value.converts)
      return {.offset = begin, .stored = length, .decoded = converted, .encoding = column.encoding};
    if (!is_zipped_) return {.offset = begin, .stored = length};
    PartValue out{.stored = input_.info.bytes,
                  .decoded = opened_.size(),
                  .begin = begin,
                  .length = length,
                  .encoding = kZippedShard};
    if (value.converts) {
      out.begin = converted_at_;
      out.length = converted;
      converted_at_ += converted;
    }
    return out;
  }

  const ShardInput& input_;
  HeaderWindow window_;
  NumberedKeys keys_;
  PartBuilder part_;
  bool is_zipped_ = false;
  Buffer opened_;  // of a compressed shard
  uint64_t raw_bytes_ = 0;
  uint64_t converted_at_ = 0;  // where the next array lies in an opened shard
  MdsShard shard_;
  std::vector<uint32_t> fields_;  // of each column
  std::vector<Extent> places_;
  std::vector<ColumnValue> values_;
  std::string last_key_;
};

Result<PartPointer> index(const ShardInput& shard) {
  return MdsIndexer(shard).run();
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  if (unit.encoding != kZippedShard)
    return open_array(unit.encoding, stored, unit.decoded_bytes, decoded);
  const std::optional<uint64_t> stated = stated_bytes(stored);
  const uint64_t raw_bytes = stated ? *stated : unit.decoded_bytes;
  if (raw_bytes > unit.decoded_bytes) return not_as_indexed("shard").at(0);
  Buffer raw;
  HEADRACE_TRY(unzip_shard(stored, raw_bytes, raw));
  HEADRACE_TRY(open_with_arrays(std::move(raw), decoded));
  if (decoded.size() != unit.decoded_bytes) return not_as_indexed("shard").at(0);
  return {};
}

}  // namespace

extern constinit const Format mds_format{
    .name = "mds",
    .doc =
        "MosaicML Streaming's shards with their index.json, raw, in zstd or in gzip: each column "
        "is a field",
    .suffixes = kSuffixes,
    .holds_gaps = false,
    .rewrites = true,
    .guards_lengths = false,
    .sniff = looks_like_mds,
    .claim = claim_mds_folder,
    .index = index,
    .create = make_mds_writer,
    .can_hold = mds_can_hold,
    .finish_folder = finish_mds_folder,
    .decode_unit = decode_unit,
};

}  // namespace headrace
