// SPDX-License-Identifier: Apache-2.0
//
// How 64 samples are unpacked.  Varints throughout:
//
//   group    bytes of values | values | keys
//   values   s | sample, sample, …     s = 0: each sample starts with its shape; else all have
//   shape s-1 shape    k+1: shape k of the head;  0, n, count … : values of each of the first n
//   fields value    inline int: zigzag(difference to the field's last);  float: 8 bytes;  else
//   length, bytes
//            in a file table: zigzag(file - (last file + 1)), and nothing more if files are whole
//            extent: zigzag(offset - expected), length
//            with encodings: 2 encoding + continues, and if the encoding is not 0: decoded bytes,
//            begin, length + 2 (0: to the end, 1: a row)
//   keys     front-coded: shared, rest, bytes
//
// A value takes at least one byte, so what is unpacked is bounded by what is there.

#include <limits>
#include <span>

#include "index/part.h"
#include "index/source.h"
#include "index/varint.h"

namespace headrace {
namespace {

// Where the last value of a group ended, from which the next is predicted.
struct Cursor {
  uint64_t end = 0;
  uint64_t next_file = 0;
};

class Unpacker {
 public:
  Unpacker(const PartHead& head, Bytes values, PartGroup& out)
      : head_(head), in_(values), out_(out), last_(head.schema.size(), 0) {
    out_.values.clear();
    out_.first.clear();
    out_.inline_bytes.clear();
  }

  Status run(uint64_t samples) {
    const uint64_t uniform = in_.varint();
    for (uint64_t s = 0; s < samples && in_.ok(); ++s)
      sample(shape(uniform == 0 ? in_.varint() : uniform));
    out_.first.push_back(static_cast<uint32_t>(out_.values.size()));
    if (!in_.done()) return corrupt("a group of the index does not parse");
    return {};
  }

 private:
  std::span<const uint32_t> shape(uint64_t number) {
    if (number != 0) {
      if (number <= head_.shapes.size()) return head_.shapes[number - 1];
      in_.fail();
      return {};
    }
    counts_.clear();
    uint64_t n = in_.count();
    if (n > head_.schema.size()) in_.fail();
    for (; n > 0 && in_.ok(); --n) counts_.push_back(static_cast<uint32_t>(in_.count()));
    return counts_;
  }

  void sample(std::span<const uint32_t> counts) {
    for (size_t f = 0; f < head_.schema.size(); ++f) {
      out_.first.push_back(static_cast<uint32_t>(out_.values.size()));
      const uint32_t n = f < counts.size() ? counts[f] : 0;
      for (uint32_t i = 0; i < n && in_.ok(); ++i) {
        if (head_.schema[f].storage == Storage::kInline)
          inline_value(head_.schema[f].kind, last_[f]);
        else
          extent();
      }
    }
  }

  void inline_value(Kind kind, int64_t& last) {
    PartValue& value = out_.values.emplace_back();
    value.offset = out_.inline_bytes.size();
    if (kind == Kind::kInt) {
      last = static_cast<int64_t>(static_cast<uint64_t>(last) +
                                  static_cast<uint64_t>(in_.signed_varint()));
      put_le(out_.inline_bytes, last);
    } else {
      put_bytes(out_.inline_bytes, in_.take(kind == Kind::kFloat ? 8 : in_.varint()));
    }
    value.length = out_.inline_bytes.size() - value.offset;
  }

  void extent() {
    PartValue& value = out_.values.emplace_back();
    value.stored = kWholeFile;
    if (head_.has_files) file(value);
    if (!head_.whole_files) range(value);
    value.decoded = value.stored;
    if (!head_.has_openings) return;
    const uint64_t encoding = in_.varint();
    if (encoding / 2 > UINT32_MAX) in_.fail();
    value.continues = encoding % 2 != 0;
    value.encoding = static_cast<uint32_t>(encoding / 2);
    if (value.encoding == 0) return;
    value.decoded = in_.varint();
    value.begin = in_.varint();
    const uint64_t length = in_.varint();
    value.length = length == 0 ? kWholeFile : length == 1 ? kRow : length - 2;
  }

  void file(PartValue& value) {
    const uint64_t file = cursor_.next_file + static_cast<uint64_t>(in_.signed_varint());
    if (file >= head_.files) in_.fail();
    if (file != cursor_.next_file - 1) cursor_.end = 0;
    value.file = static_cast<uint32_t>(file);
    cursor_.next_file = file + 1;
  }

  void range(PartValue& value) {
    const uint64_t expected =
        (cursor_.end + head_.align - 1) / head_.align * head_.align + head_.gap;
    value.offset = expected + static_cast<uint64_t>(in_.signed_varint());
    value.stored = in_.varint();
    // Checked without adding.  An extent that leaves the shard would be a wrong index; where
    // the size is not known here, the store says so when it is read.
    const uint64_t limit = head_.has_files || head_.shard_bytes == 0
                               ? static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                               : head_.shard_bytes;
    if (value.offset > limit || value.stored > limit - value.offset) in_.fail();
    cursor_.end = value.offset + value.stored;
  }

  const PartHead& head_;
  ByteReader in_;
  PartGroup& out_;
  Cursor cursor_;
  std::vector<int64_t> last_;  // of each inline int field
  std::vector<uint32_t> counts_;
};

}  // namespace

Status unpack_values(const PartHead& head, uint64_t samples, Bytes group, PartGroup& out) {
  ByteReader in(group);
  const Bytes values = in.take(in.varint());
  if (!in.ok()) return corrupt("a group of the index is cut short");
  return Unpacker(head, values, out).run(samples);
}

Status unpack_text(uint64_t n, Bytes coded, std::string& out) {
  ByteReader in(coded);
  out.clear();
  for (uint64_t i = 0; i <= n; ++i) {
    const uint64_t shared = in.varint();
    const std::string_view rest = in.text();
    if (!in.ok() || shared > out.size()) return corrupt("a name in the index does not parse");
    out.resize(shared);
    out += rest;
  }
  return {};
}

Status unpack_key(uint64_t sample_in_group, Bytes group, std::string& out) {
  ByteReader in(group);
  in.take(in.varint());
  return unpack_text(sample_in_group, in.take(in.left()), out);
}

Status unpack_texts(uint64_t n, Bytes coded, std::vector<std::string>& out) {
  ByteReader in(coded);
  out.clear();
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t shared = in.varint();
    const std::string_view rest = in.text();
    if (!in.ok() || shared > (i == 0 ? 0 : out.back().size()))
      return corrupt("a name in the index does not parse");
    std::string text = i == 0 ? std::string() : out.back().substr(0, shared);
    out.push_back(std::move(text.append(rest)));
  }
  return {};
}

Status unpack_keys(uint64_t n, Bytes group, std::vector<std::string>& out) {
  ByteReader in(group);
  in.take(in.varint());
  return unpack_texts(n, in.take(in.left()), out);
}

}  // namespace headrace
