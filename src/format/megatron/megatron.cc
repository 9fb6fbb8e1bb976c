// SPDX-License-Identifier: Apache-2.0
//
// Megatron's pairs of files: x.bin holds tokens and nothing else, x.idx says where each sequence
// and each document begins (megatron_index.h).  The shard is x.idx; tokens are read from x.bin.
//
//   tokens    those of a document, all its sequences joined
//   lengths   of the sequences, where some document has other than one: read from x.idx
//   modes     of the sequences, where the index has them (text, pictures): likewise
//   key       "<file>/<number of the document>"
//
// Sequences lie one after the other, as every writer of these files puts them; x.bin ends with the
// last of them or later.  There is no checksum.

#include <fmt/format.h>

#include "format/megatron/index.h"
#include "format/records.h"
#include "format/registry.h"
#include "index/part_builder.h"

namespace headrace {

extern const Format megatron_format;

namespace {

constexpr std::string_view kSuffixes[] = {".idx"};
constexpr std::string_view kOnly[] = {"tokens"};

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Walks the arrays of an index once, side by side.  One thread at a time.
class MegatronIndexer {
 public:
  explicit MegatronIndexer(const ShardInput& shard)
      : shard_(shard),
        bin_(companion_path(megatron_format, shard.info.path)),
        lengths_(shard),
        begins_(shard),
        others_(shard),
        documents_(shard),
        keys_(shard.info.path, kSuffixes),
        part_(PartHead{.format = "megatron",
                       .shard_bytes = shard.info.bytes,
                       .modified_ns = shard.info.modified_ns,
                       .has_files = true}) {}

  Result<PartPointer> run() {
    Status status = open();
    if (status.ok()) status = walk();
    if (!status.ok())
      return after_last_good(status, shard_.info.path, part_.samples(),
                             part_.samples() == 0 ? "" : keys_.at(part_.samples() - 1));
    return part_.finish();
  }

 private:
  Status open() {
    if (shard_.info.bytes == 0) return corrupt("the file is empty").at(0);
    HEADRACE_ASSIGN(layout_, read_layout(shard_, lengths_));
    const Result<FileInfo> bin = shard_.store.stat(bin_);
    if (!bin.ok())
      return not_found(fmt::format("the tokens of this index are not beside it: {} is missing",
                                   base_name(bin_)));
    bin_bytes_ = bin.value().bytes;
    HEADRACE_ASSIGN(const uint64_t wanted, end_of_tokens());
    if (bin_bytes_ < wanted)
      return corrupt(fmt::format("{} is cut short: it has {} bytes, the index says {}",
                                 base_name(bin_), bin_bytes_, wanted));
    if (bin_bytes_ > wanted)
      return corrupt(
          fmt::format("{} has {} bytes more than the index names, so they are no pair; "
                      "take the index that was written with it",
                      base_name(bin_), bin_bytes_ - wanted));
    HEADRACE_ASSIGN(several_, has_several());
    bin_file_ = part_.add_file(base_name(bin_));
    tokens_ = part_.field({.name = "tokens",
                           .kind = is_float(layout_.dtype) ? Kind::kArray : Kind::kTokens,
                           .dtype = layout_.dtype,
                           .shape = {kVaries}});
    if (several_ || layout_.modes_at != 0)
      index_file_ = part_.add_file(base_name(shard_.info.path));
    if (several_)
      lengths_field_ = part_.field({.name = "lengths",
                                    .kind = Kind::kArray,
                                    .dtype = layout_.is_legacy ? DType::kI64 : DType::kI32,
                                    .shape = {kVaries}});
    if (layout_.modes_at != 0)
      modes_field_ = part_.field(
          {.name = "modes", .kind = Kind::kArray, .dtype = DType::kI8, .shape = {kVaries}});
    return {};
  }

  Status walk() {
    uint64_t begin = 0;
    for (uint64_t d = 0; d < layout_.documents; ++d) {
      if (shard_.cancelled()) return cancelled("indexing was cancelled");
      HEADRACE_ASSIGN(const uint64_t end, document(d + 1));
      if (end < begin || end > layout_.sequences)
        return corrupt(fmt::format("document {} goes from sequence {} to {}, and there are {}", d,
                                   begin, end, layout_.sequences))
            .at(layout_.documents_at + 8 * d);
      HEADRACE_TRY(add(begin, end));
      begin = end;
    }
    if (begin != layout_.sequences)
      return corrupt(fmt::format("the documents have {} sequences, the index {}", begin,
                                 layout_.sequences))
          .at(layout_.documents_at);
    return {};
  }

  // The document of the sequences [begin, end).
  Status add(uint64_t begin, uint64_t end) {
    const uint64_t first = at_;
    for (uint64_t s = begin; s < end; ++s) {
      HEADRACE_ASSIGN(const Sequence sequence, read(s));
      if (sequence.begin != at_)
        return corrupt(
                   fmt::format("sequence {} begins at byte {} of the tokens, and the one before "
                               "it ends at {}",
                               s, sequence.begin, at_))
            .at(layout_.begins_at + 8 * s);
      at_ += sequence.bytes;
    }
    part_.add_extent(tokens_, {.offset = first, .stored = at_ - first, .file = bin_file_});
    const uint64_t width = layout_.is_legacy ? 8 : 4;
    if (several_)
      part_.add_extent(lengths_field_, {.offset = layout_.lengths_at + width * begin,
                                        .stored = width * (end - begin),
                                        .file = index_file_});
    if (layout_.modes_at != 0)
      part_.add_extent(
          modes_field_,
          {.offset = layout_.modes_at + begin, .stored = end - begin, .file = index_file_});
    part_.end_sample(keys_.at(part_.samples()));
    return {};
  }

  struct Sequence {
    uint64_t begin = 0;  // in bytes
    uint64_t bytes = 0;
  };

  // Compared without adding: within the .bin it is.
  Result<Sequence> read(uint64_t s) {
    const uint64_t width = size_of(layout_.dtype);
    Sequence out;
    HEADRACE_ASSIGN(const uint64_t length, length_of(s));
    HEADRACE_ASSIGN(out.begin, number(begins_, layout_.begins_at, s));
    if (layout_.is_legacy) {
      HEADRACE_TRY(check_legacy(s, out.begin, length));
      if (out.begin > bin_bytes_) return past_the_end(s);
      out.begin *= width;
    }
    if (out.begin > bin_bytes_ || length > (bin_bytes_ - out.begin) / width) return past_the_end(s);
    out.bytes = length * width;
    return out;
  }

  Status past_the_end(uint64_t s) const {
    return corrupt(fmt::format("sequence {} goes past the {} bytes of {}", s, bin_bytes_,
                               base_name(bin_)))
        .at(layout_.lengths_at + (layout_.is_legacy ? 8 : 4) * s);
  }

  // One size for each sequence, and the next one begins where it ends.
  Status check_legacy(uint64_t s, uint64_t begin, uint64_t length) {
    HEADRACE_ASSIGN(const uint64_t size, number(others_, layout_.sizes_at, s));
    if (size != s)
      return unsupported(fmt::format("sequence {} has other than one dimension", s))
          .at(layout_.sizes_at + 8 * s);
    HEADRACE_ASSIGN(const uint64_t end, number(begins_, layout_.begins_at, s + 1));
    if (end < begin || end - begin != length)
      return corrupt(fmt::format("sequence {} has {} elements, and goes from {} to {}", s, length,
                                 begin, end))
          .at(layout_.begins_at + 8 * s);
    return {};
  }

  Result<uint64_t> length_of(uint64_t s) {
    Bytes bytes;
    const uint64_t width = layout_.is_legacy ? 8 : 4;
    HEADRACE_TRY(lengths_.bytes(layout_.lengths_at + width * s, width, bytes));
    const int64_t length = layout_.is_legacy ? load_le<int64_t>(bytes) : load_le<int32_t>(bytes);
    if (length < 0)
      return corrupt(fmt::format("sequence {} has the length {}", s, length))
          .at(layout_.lengths_at + width * s);
    return static_cast<uint64_t>(length);
  }

  // Negative ones are larger than any file.
  static Result<uint64_t> number(HeaderWindow& window, uint64_t at, uint64_t i) {
    Bytes bytes;
    HEADRACE_TRY(window.bytes(at + 8 * i, 8, bytes));
    return load_le<uint64_t>(bytes);
  }

  Result<uint64_t> document(uint64_t d) {
    if (!layout_.has_documents) return d;
    return number(documents_, layout_.documents_at, d);
  }

  // Where the last sequence ends, by the index.
  Result<uint64_t> end_of_tokens() {
    if (layout_.sequences == 0) return uint64_t{0};
    const uint64_t last = layout_.sequences - 1;
    const uint64_t width = size_of(layout_.dtype);
    HEADRACE_ASSIGN(const uint64_t length, length_of(last));
    HEADRACE_ASSIGN(uint64_t begin, number(begins_, layout_.begins_at, last));
    if (layout_.is_legacy && begin < ~uint64_t{0} / 16) begin *= width;
    if (begin >= ~uint64_t{0} / 2 || length >= ~uint64_t{0} / 16)
      return corrupt(
                 fmt::format("the last sequence begins at {} and has {} elements", begin, length))
          .at(layout_.begins_at + 8 * last);
    return begin + length * width;
  }

  // Whether some document has no sequence or several.
  Result<bool> has_several() {
    if (!layout_.has_documents) return false;
    HEADRACE_ASSIGN(const uint64_t first, document(0));
    if (first != 0)
      return corrupt(fmt::format("the first document begins with sequence {}", first))
          .at(layout_.documents_at);
    if (layout_.documents != layout_.sequences) return true;
    for (uint64_t d = 1; d <= layout_.documents; ++d) {
      HEADRACE_ASSIGN(const uint64_t end, document(d));
      if (end != d) return true;
    }
    return false;
  }

  const ShardInput& shard_;
  const std::string bin_;
  HeaderWindow lengths_, begins_, others_, documents_;
  NumberedKeys keys_;
  PartBuilder part_;
  MegatronLayout layout_;
  uint64_t bin_bytes_ = 0;
  bool several_ = false;
  uint32_t bin_file_ = 0, index_file_ = 0;
  uint32_t tokens_ = 0, lengths_field_ = 0, modes_field_ = 0;
  uint64_t at_ = 0;  // where the next sequence begins
};

Result<PartPointer> index(const ShardInput& shard) {
  return MegatronIndexer(shard).run();
}

bool sniff(Bytes head) {
  return as_text(head).starts_with(kMmapMagic) || as_text(head).starts_with(kLegacyMagic);
}

}  // namespace

extern constinit const Format megatron_format{
    .name = "megatron",
    .doc =
        "Megatron's .idx beside a .bin, of Megatron-Core, Megatron-LM and fairseq: a document is a "
        "sample with the field `tokens`",
    .suffixes = kSuffixes,
    .companion = ".bin",
    .only = kOnly,
    .guards_lengths = false,
    .sniff = sniff,
    .index = index,
    .create = make_megatron_writer,
    .can_hold = megatron_can_hold,
};

}  // namespace headrace
