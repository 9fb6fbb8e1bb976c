// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/inflate.h"
#include "format/tfrecord/frame.h"

namespace headrace {
namespace {

constexpr uint64_t kStep = uint64_t{256} << 10;

class PlainBytes final : public RecordBytes {
 public:
  explicit PlainBytes(const ShardInput& shard)
      : size_(shard.info.bytes), window_(shard, HeaderWindow::kInOrder) {}

  uint64_t size() const override { return size_; }
  Status bytes(uint64_t offset, uint64_t length, Bytes& out) override {
    return window_.bytes(offset, std::min(length, size_ - offset), out);
  }

 private:
  const uint64_t size_;
  HeaderWindow window_;
};

// Holds what is asked for and one step more.
class PackedBytes final : public RecordBytes {
 public:
  PackedBytes(const ShardInput& shard, std::unique_ptr<Inflater> inflater)
      : shard_(shard), inflater_(std::move(inflater)) {}

  uint64_t size() const override { return kUnknownSize; }

  Status bytes(uint64_t offset, uint64_t length, Bytes& out) override {
    forget(offset);
    // Memory grows as data come, not as the length says: that may be anything.
    while (held_.size() - front_ < length && !ended_) HEADRACE_TRY(inflate_more());
    out = Bytes(held_).subspan(front_);
    out = out.first(std::min<uint64_t>(length, out.size()));
    return {};
  }

 private:
  void forget(uint64_t offset) {
    front_ = static_cast<size_t>(std::min<uint64_t>(offset - begin_, held_.size()));
    if (front_ < held_.size() / 2) return;  // not for every record
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(front_));
    begin_ += front_;
    front_ = 0;
  }

  Status inflate_more() {
    if (shard_.cancelled()) return cancelled("indexing was cancelled");
    HEADRACE_TRY(read_more());
    const size_t before = held_.size();
    held_.resize(before + kStep);
    MutableBytes room = MutableBytes(held_).subspan(before);
    const uint64_t at = read_ - rest_.size();
    if (Status s = inflater_->step(rest_, room); !s.ok()) return s.at(at).in_file(shard_.info.path);
    const bool nothing = room.size() == kStep;
    held_.resize(held_.size() - room.size());
    if (!nothing || !rest_.empty() || read_ < shard_.info.bytes) return {};
    if (!inflater_->at_end())
      return corrupt("the packed file is cut short: its stream has no end")
          .at(read_)
          .in_file(shard_.info.path);
    ended_ = true;
    return {};
  }

  Status read_more() {
    if (!rest_.empty() || read_ == shard_.info.bytes) return {};
    const uint64_t n = std::min(kStep, shard_.info.bytes - read_);
    HEADRACE_TRY(shard_.store.read_at(shard_.info.path, read_, n, packed_));
    rest_ = packed_.bytes();
    read_ += n;
    return {};
  }

  const ShardInput& shard_;
  const std::unique_ptr<Inflater> inflater_;
  Buffer packed_;
  Bytes rest_;         // of packed_, still to be inflated
  uint64_t read_ = 0;  // of the file
  std::vector<std::byte> held_;
  uint64_t begin_ = 0;  // of held_ in the unpacked data
  size_t front_ = 0;    // of what is still wanted, in held_
  bool ended_ = false;
};

// Writes the arrays of one record after the other.
class ArrayWriter {
 public:
  explicit ArrayWriter(MutableBytes out) : out_(out) {}

  Status add_record(Bytes record) {
    if (!parse_example(record, features_)) return {};
    for (const Feature& feature : features_) {
      const uint64_t size = array_bytes(feature);
      if (size == 0) continue;
      HEADRACE_TRY(open_number_list(feature.type, feature.list, array_));
      if (array_.size() != size || size > out_.size()) return corrupt("not what was indexed");
      std::ranges::copy(array_.bytes(), out_.begin());
      out_ = out_.subspan(size);
    }
    return {};
  }
  bool full() const { return out_.empty(); }

 private:
  MutableBytes out_;
  std::vector<Feature> features_;
  Buffer array_;
};

Status add_arrays(Bytes records, MutableBytes out) {
  ArrayWriter arrays(out);
  while (!records.empty()) {
    if (records.size() < kTfrecordHead + kTfrecordTail) return corrupt("not what was indexed");
    const auto length = load_le<uint64_t>(records);
    if (length > records.size() - kTfrecordHead - kTfrecordTail)
      return corrupt("not what was indexed");
    HEADRACE_TRY(arrays.add_record(records.subspan(kTfrecordHead, length)));
    records = records.subspan(kTfrecordHead + length + kTfrecordTail);
  }
  return arrays.full() ? Status() : corrupt("not what was indexed");
}

}  // namespace

bool is_packed(Bytes head) {
  if (head.size() < 2) return false;
  const auto first = static_cast<unsigned>(head[0]);
  const auto second = static_cast<unsigned>(head[1]);
  const bool zlib = (first & 0x0fu) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
  return is_gzip(head) || zlib;
}

Bytes unpack_head(Bytes head, MutableBytes out) {
  const Result<std::unique_ptr<Inflater>> inflater = zlib_inflater();
  MutableBytes rest = out;
  if (!inflater.ok() || !inflater.value()->step(head, rest).ok()) return {};
  return Bytes(out).first(out.size() - rest.size());
}

Result<std::unique_ptr<RecordBytes>> open_record_bytes(const ShardInput& shard) {
  Buffer head;
  const uint64_t n = std::min(kTfrecordHead, shard.info.bytes);
  if (n > 0) HEADRACE_TRY(shard.store.read_at(shard.info.path, 0, n, head));
  // A length whose checksum is right is no stream, whatever it looks like.
  const Bytes b = head.bytes();
  const bool plain =
      n == kTfrecordHead && masked_crc32c(b.first(8)) == load_le<uint32_t>(b.subspan(8));
  if (plain || !is_packed(b)) return std::unique_ptr<RecordBytes>(new PlainBytes(shard));
  HEADRACE_ASSIGN(std::unique_ptr<Inflater> inflater, zlib_inflater());
  return std::unique_ptr<RecordBytes>(new PackedBytes(shard, std::move(inflater)));
}

uint64_t array_bytes(const Feature& feature) {
  Bytes run;
  if (feature.type == FeatureType::kInt64) return feature.count * 8;
  if (feature.type != FeatureType::kFloat || float_run(feature, run)) return 0;
  return feature.count * 4;
}

Status open_packed_records(Bytes stored, bool with_arrays, MutableBytes decoded) {
  HEADRACE_ASSIGN(const std::unique_ptr<Inflater> inflater, zlib_inflater());
  MutableBytes rest = decoded;
  HEADRACE_TRY(inflater->step(stored, rest));
  // Full to the brim, the stream's checksum is not read yet: one byte more must not come.
  std::byte more{};
  MutableBytes none(&more, 1);
  if (!inflater->at_end() || !stored.empty()) HEADRACE_TRY(inflater->step(stored, none));
  if (!stored.empty() || none.empty() || !inflater->at_end())
    return corrupt("the packed file is not what was indexed");
  if (with_arrays) return add_arrays(Bytes(decoded).first(decoded.size() - rest.size()), rest);
  return rest.empty() ? Status() : corrupt("the packed file is not what was indexed");
}

}  // namespace headrace
