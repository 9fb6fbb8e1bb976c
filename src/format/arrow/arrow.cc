// SPDX-License-Identifier: Apache-2.0
//
// Arrow IPC: record batches, as a file with a footer (Feather V2 too) or as a stream (the .arrow
// files of Hugging Face's data sets).
//
//   stream    message of the schema | messages of dictionaries and batches | ffffffff 00000000
//   message   | u32 ffffffff | i32 n | n bytes of metadata, a FlatBuffer | body: buffers |
//   file      | ARROW1 00 00 | stream | footer, a FlatBuffer | i32 its length | ARROW1 |
//
// Little-endian.  There are no checksums.  Offsets, numbers, nulls and keys are read while the
// shard is indexed; values stay where they lie.  A compressed buffer is a unit that opens as a
// whole.  What becomes of columns: arrow_columns.h.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "format/arrow/compression.h"
#include "format/arrow/rows.h"
#include "format/arrow/writer.h"
#include "format/format.h"
#include "format/records.h"
#include "index/part_builder.h"

namespace headrace {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kSuffixes[] = {".arrow", ".arrows", ".feather", ".ipc"};
constexpr uint64_t kFileHead = 8;   // the magic, padded
constexpr uint64_t kFileTail = 10;  // the footer's length and the magic

// A message: where its metadata and its body are.
struct Frame {
  uint64_t metadata = 0;
  uint64_t metadata_length = 0;  // 0: the end of the stream
  uint64_t body = 0;
};

// Walks the messages once.  One thread at a time.
class ArrowIndexer {
 public:
  explicit ArrowIndexer(const ShardInput& shard)
      : shard_(shard),
        body_(shard),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "arrow",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_openings = true}) {}

  Result<PartPointer> run() {
    if (Status s = walk(); !s.ok())
      return after_last_good(s, shard_.info.path, part_.samples(), last_key_);
    finish_notices();
    return part_.finish();
  }

 private:
  Status walk() {
    Bytes head;
    HEADRACE_TRY(bytes(0, std::min(size(), kFileHead), head));
    if (as_text(head).starts_with(kArrowMagic)) return walk_file();
    if (as_text(head).starts_with("FEA1"))
      return unsupported(
          "a Feather file of version 1: write it again with pyarrow.feather.write_feather");
    return walk_stream();
  }

  Status walk_file() {
    is_file_ = true;
    Bytes tail;
    if (size() < kFileHead + kFileTail)
      return corrupt("the file ends before its footer").at(size());
    HEADRACE_TRY(bytes(size() - kFileTail, kFileTail, tail));
    if (as_text(tail.subspan(4)) != kArrowMagic)
      return corrupt("the file does not end with its footer: it is cut short, or not finished")
          .at(size() - kFileTail);
    const auto length = load_le<int32_t>(tail);
    if (length <= 0 || static_cast<uint64_t>(length) > size() - kFileHead - kFileTail)
      return corrupt(fmt::format("a footer of {} bytes does not fit into the file", length))
          .at(size() - kFileTail);
    const uint64_t footer_at = size() - kFileTail - static_cast<uint64_t>(length);
    ArrowFooter footer;
    HEADRACE_TRY(take_metadata(footer_at, static_cast<uint64_t>(length)));
    if (Status s = parse_arrow_footer(metadata_.bytes(), footer); !s.ok()) return s.at(footer_at);
    metadata_ = Buffer();
    if (Status s = take_schema(std::move(footer.schema)); !s.ok()) return s.at(footer_at);
    HEADRACE_TRY(walk_blocks(footer.dictionaries, footer_at));
    is_after_dictionaries_ = true;
    return walk_blocks(footer.batches, footer_at);
  }

  // In the order of the file, none within another: so a small footer cannot name much.
  Status walk_blocks(const std::vector<ArrowBlock>& blocks, uint64_t limit) {
    uint64_t free = kFileHead;
    for (const ArrowBlock& block : blocks) {
      const auto at = static_cast<uint64_t>(block.offset);
      const auto head = static_cast<uint64_t>(block.metadata_length);
      const auto body = static_cast<uint64_t>(block.body_length);
      if (block.offset < 0 || block.metadata_length < 8 || block.body_length < 0 || at < free ||
          at > limit || head > limit - at || body > limit - at - head)
        return corrupt(fmt::format("the footer names a batch at {} of {} and {} bytes, which is "
                                   "not between {} and {}",
                                   block.offset, block.metadata_length, block.body_length, free,
                                   limit))
            .at(limit);
      if (Status s = walk_block(at, head, body); !s.ok()) return s.at(at);
      free = at + head + body;
    }
    return {};
  }

  Status walk_block(uint64_t at, uint64_t head, uint64_t body) {
    Frame frame;
    HEADRACE_TRY(take_frame(at, head, frame));
    HEADRACE_TRY(take_message(frame));
    if (message_.body_length < 0 || static_cast<uint64_t>(message_.body_length) > body)
      return corrupt("the batch and the footer differ about its length");
    const auto wanted =
        is_after_dictionaries_ ? ArrowMessage::Header::kBatch : ArrowMessage::Header::kDictionary;
    if (message_.header != wanted) return corrupt("the footer takes one message for another");
    // What lies between the metadata and the body is padding that the footer counts.
    return use_message(at + head);
  }

  Status walk_stream() {
    for (uint64_t at = 0; at < size();) {
      Frame frame;
      if (Status s = take_frame(at, size() - at, frame); !s.ok()) return s.at(at);
      if (frame.metadata_length == 0) {
        if (frame.metadata < size())
          notice(fmt::format("{} bytes after the end of the stream are not read",
                             size() - frame.metadata));
        return schema_ == nullptr ? corrupt("a stream without a schema") : Status();
      }
      if (Status s = take_message(frame); !s.ok()) return s.at(at);
      if (message_.body_length < 0 ||
          static_cast<uint64_t>(message_.body_length) > size() - frame.body)
        return corrupt(fmt::format("the batch is cut short: {} bytes are wanted, {} are there",
                                   message_.body_length, size() - frame.body))
            .at(at);
      if (Status s = use_message(frame.body); !s.ok()) return s.at(at);
      at = frame.body + static_cast<uint64_t>(message_.body_length);
    }
    if (schema_ == nullptr) return corrupt("an empty file: not even a schema is there").at(0);
    notice("the stream ends without its end mark: it may be cut short");
    return {};
  }

  // The prefix is `ffffffff n`, or only `n` before Arrow 0.15.
  Status take_frame(uint64_t at, uint64_t room, Frame& out) {
    Bytes prefix;
    HEADRACE_TRY(bytes(at, std::min<uint64_t>(room, 8), prefix));
    if (prefix.size() < 4) return corrupt("the file ends within the head of a message");
    const bool is_new = load_le<uint32_t>(prefix) == kArrowContinuation;
    if (is_new && prefix.size() < 8) return corrupt("the file ends within the head of a message");
    const auto length = load_le<int32_t>(is_new ? prefix.subspan(4) : prefix);
    const uint64_t taken = is_new ? 8 : 4;
    if (length < 0 || static_cast<uint64_t>(length) > room - taken)
      return corrupt(at == 0 ? fmt::format("no Arrow file and no Arrow stream, or one cut short")
                             : fmt::format("metadata of {} bytes are wanted, {} are there", length,
                                           room - taken));
    out = {at + taken, static_cast<uint64_t>(length), at + taken + static_cast<uint64_t>(length)};
    return {};
  }

  Status take_message(const Frame& frame) {
    HEADRACE_TRY(take_metadata(frame.metadata, frame.metadata_length));
    return parse_arrow_message(metadata_.bytes(), message_);
  }

  // Copied: FlatBuffers wants them aligned.
  Status take_metadata(uint64_t at, uint64_t length) {
    Bytes from;
    HEADRACE_TRY(bytes(at, length, from));
    metadata_.resize(length);
    if (length > 0) std::memcpy(metadata_.data(), from.data(), length);
    return {};
  }

  Status use_message(uint64_t body) {
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    switch (message_.header) {
      case ArrowMessage::Header::kSchema:
        if (schema_ != nullptr) return corrupt("a second schema in the stream");
        return take_schema(std::move(message_.schema));
      case ArrowMessage::Header::kDictionary:
        return take_dictionary(body);
      case ArrowMessage::Header::kBatch:
        return take_batch(body);
      case ArrowMessage::Header::kOther:
        return unsupported("a message that is no batch: tensors on their own are not read");
    }
    return {};
  }

  Status take_schema(ArrowFileSchema schema) {
    schema_ = std::make_unique<ArrowFileSchema>(std::move(schema));
    ArrowColumns columns = plan_arrow_columns(*schema_);
    leaves_ = std::move(columns.leaves);
    for (std::string& text : columns.notices) notice(std::move(text));
    if (leaves_.size() > kMaxFields)
      return unsupported(
          fmt::format("{} columns; at most {} can be read: write the file again "
                      "with those that are needed",
                      leaves_.size(), kMaxFields));
    for (const ArrowLeaf& leaf : leaves_) {
      fields_.push_back(leaf.is_key ? 0 : part_.field(leaf.field));
      const ArrowField& field = schema_->fields[leaf.node];
      if (!field.dictionary) continue;
      ArrowDictionary& dictionary = dictionaries_[*field.dictionary];
      const auto values = plan_arrow_dictionary(*schema_, leaf.node, dictionary.schema);
      if (values) dictionary.leaf = *values;
    }
    if (part_.head().schema.empty())
      return unsupported("no column of it can be read" +
                         (part_.head().notices.empty() ? "" : ": " + part_.head().notices[0]));
    rows_ = std::make_unique<ArrowRows>(*schema_, body_, dictionaries_);
    return {};
  }

  // Places in the dictionary's own batch; a later one adds to it, or takes its place in a stream.
  Status take_dictionary(uint64_t body) {
    if (schema_ == nullptr) return corrupt("a dictionary before the schema");
    const auto known = dictionaries_.find(message_.dictionary);
    if (known == dictionaries_.end()) return {};  // of a column that is not read
    ArrowDictionary& dictionary = known->second;
    HEADRACE_TRY(body_.open(dictionary.schema, message_.batch, body,
                            static_cast<uint64_t>(message_.body_length)));
    if (!message_.is_delta) {
      if (is_file_ && dictionary.is_there)
        return corrupt("a dictionary comes twice, which only a stream may have");
      dictionary.values.clear();
      dictionary.is_null.clear();
    }
    ArrowRows rows(dictionary.schema, body_, dictionaries_);
    HEADRACE_TRY(rows.load({&dictionary.leaf, 1}));
    const uint64_t count = body_.array(0).length;
    HEADRACE_TRY(body_.spend_rows(count));
    for (uint64_t row = 0; row < count; ++row) {
      HEADRACE_TRY(rows.values(dictionary.leaf, row, values_));
      dictionary.is_null.push_back(values_.empty());
      dictionary.values.push_back(values_.empty() ? ArrowValue() : values_.front());
    }
    dictionary.is_there = true;
    return {};
  }

  Status take_batch(uint64_t body) {
    if (schema_ == nullptr) return corrupt("a batch before the schema");
    HEADRACE_TRY(
        body_.open(*schema_, message_.batch, body, static_cast<uint64_t>(message_.body_length)));
    HEADRACE_TRY(rows_->load(leaves_));
    const auto count = static_cast<uint64_t>(message_.batch.rows);
    HEADRACE_TRY(body_.spend_rows(count));
    if (rows_->shared_bytes() > 0) part_.begin_shared(count, rows_->shared_bytes());
    for (uint64_t row = 0; row < count; ++row) {
      if (row % 4096 == 4095 && shard_.cancelled()) return cancelled("indexing was cancelled");
      HEADRACE_TRY(take_row(row));
    }
    return {};
  }

  Status take_row(uint64_t row) {
    std::string_view key;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].is_key)
        HEADRACE_TRY(rows_->key(leaves_[i], row, key));
      else
        HEADRACE_TRY(add_values(leaves_[i], fields_[i], row));
    }
    last_key_ = key.empty() ? std::string_view(keys_.at(part_.samples())) : key;
    part_.end_sample(last_key_);
    return {};
  }

  Status add_values(const ArrowLeaf& leaf, uint32_t field, uint64_t row) {
    HEADRACE_TRY(rows_->values(leaf, row, values_));
    if (part_.head().schema[field].kind == Kind::kBytes) HEADRACE_TRY(inspect(leaf, field));
    for (const ArrowValue& value : values_) {
      if (leaf.form != ArrowForm::kNumber)
        part_.add_extent(field, value.place);
      else if (leaf.field.kind == Kind::kInt)
        part_.add_int(field, value.integer);
      else
        part_.add_float(field, value.real);
    }
    return {};
  }

  // Bytes whose name tells nothing: the first value tells of pictures, where it lies plain.
  Status inspect(const ArrowLeaf& leaf, uint32_t field) {
    looked_.resize(part_.head().schema.size(), false);
    if (looked_[field] || leaf.form != ArrowForm::kBlob || values_.empty()) return {};
    looked_[field] = true;
    const PartValue& place = values_.front().place;
    if (place.encoding != 0 || !schema_->fields[leaf.node].meta(kArrowKindMeta).empty()) return {};
    Buffer head;
    HEADRACE_TRY(shard_.store.read_at(shard_.info.path, place.offset,
                                      std::min<uint64_t>(place.stored, kMagicBytes), head));
    part_.head().schema[field].kind = kind_of_magic(as_text(head.bytes()));
    return {};
  }

  void finish_notices() {
    if (rows_ != nullptr && rows_->lists_with_nulls() > 0)
      notice(fmt::format("{} lists with nulls in them are taken as missing",
                         rows_->lists_with_nulls()));
  }

  void notice(std::string text) { part_.head().notices.push_back(std::move(text)); }
  Status bytes(uint64_t at, uint64_t length, Bytes& out) {
    out = {};
    return length == 0 ? Status() : body_.window().bytes(at, length, out);
  }
  uint64_t size() const { return shard_.info.bytes; }

  const ShardInput& shard_;
  ArrowBody body_;
  NumberedKeys keys_;
  PartBuilder part_;
  std::unique_ptr<const ArrowFileSchema> schema_;
  std::vector<ArrowLeaf> leaves_;
  std::vector<uint32_t> fields_;  // of the leaves
  ArrowDictionaries dictionaries_;
  std::unique_ptr<ArrowRows> rows_;
  bool is_file_ = false;
  bool is_after_dictionaries_ = false;  // of a file
  Buffer metadata_;                     // of the message at hand
  ArrowMessage message_;
  std::vector<ArrowValue> values_;
  std::vector<bool> looked_;  // fields, at their first value
  std::string last_key_;
};

Result<PartPointer> index(const ShardInput& shard) {
  return ArrowIndexer(shard).run();
}

Status decode_unit(const Store&, const std::string&, const Unit& unit, Bytes stored,
                   Buffer& decoded) {
  if (unit.encoding > static_cast<uint32_t>(ArrowCompression::kZstd))
    return not_as_indexed("buffer").at(0);
  const Status status = open_arrow_buffer(static_cast<ArrowCompression>(unit.encoding), stored,
                                          unit.decoded_bytes, decoded);
  return status.ok() ? status : status.at(0);
}

bool sniff(Bytes head) {
  if (as_text(head).starts_with("ARROW1\0\0"sv)) return true;
  return head.size() > 16 && load_le<uint32_t>(head) == kArrowContinuation &&
         load_le<int32_t>(head.subspan(4)) > 0 && begins_arrow_schema(head.subspan(8));
}

}  // namespace

extern constinit const Format arrow_format{
    .name = "arrow",
    .doc =
        "Arrow IPC, files and streams (Feather, Hugging Face's data sets): each column is a "
        "field, read where it lies",
    .suffixes = kSuffixes,
    .guards_lengths = false,
    .sniff = sniff,
    .index = index,
    .create = make_arrow_writer,
    .can_hold = arrow_can_hold,
    .decode_unit = decode_unit,
};

}  // namespace headrace
